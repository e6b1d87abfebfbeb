"""RPC endpoint of the leading controller for memory that hosts lend (since 1.2); see ControllerAPI."""

from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.lenders import Lenders, call_agent
from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import BadRequest, BufferShortage
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.requests import BorrowRequest
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI
from pondstack.rpc.controller_api import LENDING_VERSION


class LendingEndpoint:
    """What the leader answers to lenders, borrowers and operators. Errors are of pondstack.domain.errors.

    `claims` None: Placement is off, and guaranteed loans need no claim.
    """

    target = oslo_messaging.Target(version=LENDING_VERSION)

    def __init__(
        self,
        *,
        ledger: Ledger,
        reader: SqlReader,
        lenders: Lenders,
        agents: AgentLendingAPI,
        gate: Gate,
        claims: RemoteClaims | None = None,
    ) -> None:
        self.gate = gate
        self._claims = claims
        self._ledger, self._reader, self._lenders, self._agents = ledger, reader, lenders, agents

    # Calls of agents

    @gated
    def delegate(
        self,
        _context: Any,
        *,
        host: str,
        sequence: int,
        incarnation: str,
        kind: str,
        buffer_mib: int,
        buffers: Sequence[Mapping[str, int]],
    ) -> None:
        """Write down all that a host lends."""
        lender = Lender(host, incarnation, _kind(kind), buffer_mib)
        self._ledger.buffers.delegate(lender, sequence, {item["index"]: item["offset_mib"] for item in buffers})
        self._lenders.settle()

    @gated
    def reclaim(self, _context: Any, *, operation_id: str, host: str, mib: int) -> dict[str, Any]:
        """Return the buffers that a lender may withdraw; it wants memory back."""
        return {"indexes": self._lenders.reclaim(operation_id, host, mib)}

    @gated
    def release_buffers(
        self,
        _context: Any,
        *,
        operation_id: str,
        host: str,
        allocation_uuid: str,
        lender: str,
        incarnation: str,
        indexes: Sequence[int],
    ) -> None:
        """Note that a borrower does not use buffers any more; without an allocation it had only been promised them."""
        del lender
        if allocation_uuid:
            only = [(incarnation, index) for index in indexes]
            self._lenders.give_back(operation_id, allocation_uuid, host, only)

    @gated
    def borrow(self, _context: Any, *, operation_id: str, **request: Any) -> dict[str, Any]:
        """Give buffers and keys to a borrower (GS_alloc_ext when guaranteed, else GS_alloc_swap).

        `request`: the fields of BorrowRequest. A guaranteed one is admitted against the consumer's claim in Placement.
        """
        wanted = BorrowRequest(**request)
        size = next((item.buffer_mib for item in self._reader.lenders() if item.incarnation), 0)
        if not size:
            raise BufferShortage("no host lends memory; have some lend it: openstack memory host delegate")
        return self._lenders.borrow(operation_id, wanted, size, self._claimed_mib(wanted))

    def _claimed_mib(self, wanted: BorrowRequest) -> int | None:
        if self._claims is None or not wanted.guaranteed:
            return None
        return self._claims.claimed_mib(wanted.host, wanted.consumer_uuid)

    @gated
    def acknowledge_borrowed(
        self,
        _context: Any,
        *,
        operation_id: str,
        allocation_uuid: str,
        host: str,
        opened: Sequence[tuple[str, int]],
    ) -> None:
        """The borrower has its keys."""
        places = [(incarnation, index) for incarnation, index in opened]
        self._ledger.buffers.acknowledge(operation_id, allocation_uuid, host, places)

    # Calls of operators

    @gated
    def delegate_host(self, _context: Any, *, name: str, mib: int, kind: str, operation_id: str) -> dict[str, Any]:
        """Have a host lend so many MiB in all."""
        self._reader.host(name)
        epoch, wanted = self._ledger.epoch, str(_kind(kind))
        return call_agent(
            name, lambda: self._agents.lend(name, epoch=epoch, operation_id=operation_id, mib=mib, kind=wanted)
        )

    @gated
    def reclaim_host(
        self, _context: Any, *, name: str, mib: int, seconds: float | None, operation_id: str
    ) -> dict[str, Any]:
        """Have a host take so many MiB back."""
        self._reader.host(name)
        epoch = self._ledger.epoch
        return call_agent(
            name,
            lambda: self._agents.reclaim(name, epoch=epoch, operation_id=operation_id, mib=mib, seconds=seconds),
        )


def _kind(text: str) -> LenderKind:
    try:
        return LenderKind(text)
    except ValueError:
        raise BadRequest(f"a host lends as {' or '.join(LenderKind)}, not as {text!r}") from None
