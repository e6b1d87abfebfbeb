"""RPC endpoint of the borrower side: pondstack.rpc.agent_lending_api on the wire; refuses former controllers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging

from pondstack.rpc.agent_lending_api import ESCROW_VERSION
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.rpc_errors import answered, need


class BorrowerEndpoint:
    """The controller's commands to a borrower. All raise StaleEpoch, and HostUnusable where none is (None)."""

    target = oslo_messaging.Target(version=ESCROW_VERSION)

    def __init__(
        self,
        borrower: Borrower | None,
        epoch: EpochGuard,
        consumers: Callable[[], list[dict[str, Any]]] | None = None,
    ) -> None:
        self._borrower, self._epoch, self._consumers = borrower, epoch, consumers

    @answered
    def prepare(
        self,
        _context: Any,
        *,
        epoch: int,
        lender: str,
        ticket: Mapping[str, Any],
        keys: Mapping[str, Any],
        allocation_uuid: str = "",
        incarnation: str = "",
    ) -> list[int]:
        """Have a lender's ticket and keys of its buffers, all or none; returns the buffers."""
        return self._commanded(epoch).prepare(lender, incarnation, ticket, keys, allocation_uuid)

    @answered
    def connect(self, _context: Any, *, epoch: int, lender: str, incarnation: str, ticket: Mapping[str, Any]) -> bool:
        """Have the data plane connect to a lender while that is awake; returns whether it is connected."""
        return self._commanded(epoch).connect(lender, incarnation, ticket)

    @answered
    def give_back(
        self,
        _context: Any,
        *,
        epoch: int,
        allocation_uuid: str,
        lender: str,
        indexes: Sequence[int],
        incarnation: str = "",
    ) -> list[int]:
        """Stop using buffers, then forget their keys; returns which are released already."""
        return self._commanded(epoch).give_back(allocation_uuid, lender, incarnation, indexes)

    @answered
    def get_borrowing(self, _context: Any) -> dict[str, Any]:
        """Return what is borrowed and of whom, and, where this host has any, which consumers use it."""
        found = need(self._borrower).report()
        return found if self._consumers is None else {**found, "consumers": self._consumers()}

    def _commanded(self, epoch: int) -> Borrower:
        borrower = need(self._borrower)
        self._epoch.check(epoch)
        return borrower
