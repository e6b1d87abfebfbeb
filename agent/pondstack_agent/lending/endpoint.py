"""RPC endpoint of the lender side: pondstack.rpc.agent_lending_api on the wire, Lending behind it."""

from typing import Any

import oslo_messaging

from pondstack.rpc.agent_lending_api import LENDING_VERSION
from pondstack_agent.lending.lending import Lending
from pondstack_agent.rpc_errors import answered, need


class LendingEndpoint:
    """The methods that others may call; all of them raise HostUnusable where nothing is lent (`lending` None)."""

    target = oslo_messaging.Target(version=LENDING_VERSION)

    def __init__(self, lending: Lending | None) -> None:
        self._lending = lending

    @answered
    def lend(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See Lending.lend."""
        return need(self._lending).lend(**arguments)

    @answered
    def reclaim(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See Lending.reclaim."""
        return need(self._lending).reclaim(**arguments)

    @answered
    def export(self, _context: Any, **arguments: Any) -> dict[str, Any]:
        """See Lending.export."""
        return need(self._lending).export(**arguments)

    @answered
    def revoke(self, _context: Any, **arguments: Any) -> list[int]:
        """See Lending.revoke."""
        return need(self._lending).revoke(**arguments)

    @answered
    def withdraw(self, _context: Any, **arguments: Any) -> list[int]:
        """See Lending.withdraw."""
        return need(self._lending).withdraw(**arguments)

    @answered
    def get_lending(self, _context: Any) -> dict[str, Any]:
        """See Lending.get_lending."""
        return need(self._lending).get_lending()
