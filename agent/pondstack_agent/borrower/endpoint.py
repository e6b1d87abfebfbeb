"""RPC endpoint of the borrower side: pondstack.rpc.agent_lending_api on the wire, Borrower behind it."""

from collections.abc import Callable
from typing import Any

import oslo_messaging

from pondstack.rpc.agent_lending_api import LENDING_VERSION
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.rpc_errors import answered, need


class BorrowerEndpoint:
    """The methods that others may call; all of them raise HostUnusable where nothing is borrowed (None)."""

    target = oslo_messaging.Target(version=LENDING_VERSION)

    def __init__(self, borrower: Borrower | None, consumers: Callable[[], list[dict[str, Any]]] | None = None) -> None:
        self._borrower, self._consumers = borrower, consumers

    @answered
    def prepare(self, _context: Any, **arguments: Any) -> list[int]:
        """See Borrower.prepare."""
        return need(self._borrower).prepare(**arguments)

    @answered
    def give_back(self, _context: Any, **arguments: Any) -> list[int]:
        """See Borrower.give_back."""
        return need(self._borrower).give_back(**arguments)

    @answered
    def get_borrowing(self, _context: Any) -> dict[str, Any]:
        """Return what is borrowed and of whom, and, where this host has any, which consumers use it."""
        found = need(self._borrower).get_borrowing()
        return found if self._consumers is None else {**found, "consumers": self._consumers()}
