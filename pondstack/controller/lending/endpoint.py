"""RPC endpoint of the leading controller for memory that hosts lend (since 1.2); see ControllerAPI."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import oslo_messaging

from pondstack.controller.gate import Gate, gated
from pondstack.controller.lending.active_hosts import ActiveHosts
from pondstack.controller.lending.best_effort import BestEffortLoans
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.lenders import Lenders, call_agent
from pondstack.db.read.reader import SqlReader
from pondstack.domain import column_shapes
from pondstack.domain.admission import LendStage, told
from pondstack.domain.buffer_choice import Supply, to_find
from pondstack.domain.errors import BadRequest, BufferShortage, Conflict, NotAligned, Unavailable
from pondstack.domain.lending import Lender, LenderKind
from pondstack.domain.reported import LENT_BUFFERS
from pondstack.domain.requests import BorrowRequest
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_lending_api import AgentLendingAPI
from pondstack.rpc.controller_lending_api import INHERITANCE_VERSION
from pondstack.rpc.wire import borrow_request


class LendingEndpoint:
    """What the leader answers to lenders, borrowers and operators. Errors are of pondstack.domain.errors.

    `claims` None: Placement is off, and guaranteed loans need no claim.

    `admit` wakes whoever admits lent memory (Admission). None: Placement is not used, and nobody else sells it.

    `active_hosts` are asked for what a borrow lacks, where that is configured. `gave_way` counts the buffers that
    best-effort loans are asked back for guaranteed ones.
    """

    target = oslo_messaging.Target(version=INHERITANCE_VERSION)

    def __init__(
        self,
        *,
        ledger: Ledger,
        reader: SqlReader,
        lenders: Lenders,
        agents: AgentLendingAPI,
        gate: Gate,
        claims: RemoteClaims | None = None,
        admit: Callable[[], object] | None = None,
        active_hosts: Callable[[], ActiveHosts | None] = lambda: None,
        gave_way: Callable[[int], object] = lambda _buffers: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.gate, self._active_hosts = gate, active_hosts
        self._claims, self._admit = claims, admit
        self._best_effort = BestEffortLoans(ledger, lenders, gave_way, clock)
        self._ledger, self._reader, self._lenders, self._agents = ledger, reader, lenders, agents

    # Calls of agents

    @gated
    def delegate(
        self,
        _context: Any,
        *,
        host: str,
        sequence: int,
        incarnation: Annotated[str, column_shapes.UUID],
        kind: str,
        buffer_mib: Annotated[int, column_shapes.MIB],
        buffers: Annotated[Sequence[Mapping[str, int]], LENT_BUFFERS],
    ) -> None:
        """Write down all that a host lends."""
        lender = Lender(host, incarnation, _kind(kind), buffer_mib)
        offsets_mib = {item["index"]: item["offset_mib"] for item in buffers}
        self._ledger.buffers.delegate(lender, sequence, offsets_mib, admitted=self._admit is None)
        self._lenders.settle()
        if self._admit is not None:
            self._admit()

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
        What is missing, hosts that are awake are asked for (AS_get_free_mem), and for the rest best-effort loans give
        way to a guaranteed one, which is Unavailable meanwhile: to be repeated.
        """
        wanted, hosts = borrow_request(**request), self._active_hosts()
        size = self._buffer_mib(hosts is not None)
        if not size:
            raise BufferShortage("no host lends memory; have some lend it: openstack memory host delegate")
        held_back = self._best_effort.held_back
        try:
            given = self._lenders.borrow(operation_id, wanted, size, self._claimed_mib(wanted), held_back)
        except BufferShortage as shortage:
            coming = self._find_more(operation_id, wanted, size, hosts)
            if not coming:
                raise
            raise Unavailable(f"{shortage.message}. {coming}: repeat it") from shortage
        self._best_effort.served(operation_id)
        if hosts is not None and (missing := wanted.remote_mib // size - len(given["buffers"])) > 0:
            hosts.ask_for(wanted.host, missing, size)
        return given

    def _find_more(self, operation_id: str, wanted: BorrowRequest, size: int, hosts: ActiveHosts | None) -> str:
        """Have others make room for a guaranteed loan; returns who does, '' when all of them together cannot.

        Active hosts come first, best-effort loans give way for the rest: one wait for both.
        """
        supply = Supply(*self._best_effort.way(wanted.host, size), *(hosts.room(wanted.host, size) if hosts else ()))
        missing = self._lenders.missing(wanted, size)
        who = self._ask(wanted, missing, supply, size, hosts)
        if not who and (missing <= 0 or self._lenders.missing(wanted, size) < missing):
            # Neither free nor on its way when it was looked for, one after the other.
            who = ["some of it has come meanwhile"]
        if who:
            self._best_effort.wait(operation_id)
        return " and ".join(who).capitalize()

    def _ask(
        self, wanted: BorrowRequest, missing: int, supply: Supply, size: int, hosts: ActiveHosts | None
    ) -> list[str]:
        """Ask those that the plan names for what a loan lacks; returns who gives, [] when there is no such plan."""
        demand = to_find(missing, supply)
        if demand is None or missing <= 0:
            return []
        lent = supply.coming + (hosts.ask(demand.asked, size) if hosts else 0)
        who = ["hosts that have room are asked to lend"] if lent else []
        if missing > lent:
            if not self._best_effort.give_way(wanted, size, hosts.lends() if hosts else {}):
                return []
            who.append("best-effort loans give way")
        return who

    def _buffer_mib(self, before_anybody_lends: bool) -> int:
        """Return the size of a buffer in the rack, 0 when nobody says."""
        size = next((item.buffer_mib for item in self._reader.lenders() if item.incarnation), 0)
        if size or not before_anybody_lends:
            return size
        reports = self._reader.rack().hosts.values()
        return next((int(report.lending["buffer_mib"]) for report in reports if report.lending), 0)

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
        self._ledger.loans.acknowledge(operation_id, allocation_uuid, host, places)

    # Calls of operators

    @gated
    def delegate_host(self, _context: Any, *, name: str, mib: int, kind: str, operation_id: str) -> dict[str, Any]:
        """Have a host lend so many MiB in all, once they have left what Nova may place there."""
        self._check_awake(name)
        epoch, wanted = self._ledger.epoch, _kind(kind)
        if self._admit is None:
            return call_agent(
                name, lambda: self._agents.lend(name, epoch=epoch, operation_id=operation_id, mib=mib, kind=str(wanted))
            )
        present = self._ledger.lends.of_host(name)
        ended = self._ledger.lends.ended(operation_id)
        if ended is None and (present is None or present.operation_id != operation_id):
            self._check_lender(name, operation_id, mib)
        lend = self._ledger.lends.begin(operation_id, name, mib, wanted)
        self._admit()
        if lend is not None:
            admitted = [item.size_mib for item in self._ledger.buffers.find(name) if item.admitted]
            return lend.progress(sum(admitted))
        ended = self._ledger.lends.ended(operation_id) or (0, "its host was fenced or removed meanwhile")
        return told(operation_id, mib, *ended)

    @gated
    def reclaim_host(
        self, _context: Any, *, name: str, mib: int, seconds: float | None, operation_id: str
    ) -> dict[str, Any]:
        """Have a host take so many MiB back; one that still waits for memory to lend waits no more."""
        self._check_awake(name)
        epoch, lend = self._ledger.epoch, self._ledger.lends.of_host(name)
        if lend is not None and lend.reason and lend.stage is LendStage.WAITING:
            under_way = not self._ledger.lends.end(lend, 0, f"reclaim {operation_id} came first")
        else:
            under_way = lend is not None and not lend.reason
        if lend is not None and under_way:
            raise Conflict(f"lend {lend.operation_id} is under way on host {name}; wait for its end")
        return call_agent(
            name,
            lambda: self._agents.reclaim(name, epoch=epoch, operation_id=operation_id, mib=mib, seconds=seconds),
        )

    def _check_awake(self, name: str) -> None:
        """Raise NotFound, and Conflict for a host whose sleep says what it lends."""
        self._reader.host(name)
        sleep = self._ledger.host_sleeps.of_host(name)
        if sleep is not None:
            raise Conflict(f"host {name} is {sleep.state}, and lends by that; wake it first")

    def _check_lender(self, name: str, operation_id: str, mib: int) -> None:
        """Refuse at once what the host would refuse; raises HostUnusable, NotAligned, Conflict, AgentUnavailable."""
        lending = call_agent(name, lambda: self._agents.get_lending(name))
        size = lending["buffer_mib"]
        if mib % size:
            raise NotAligned(f"{mib} MiB is no whole number of buffers of {size} MiB ([lending] buffer_mib)")
        for other in lending["operations"]:
            if other["state"] != "done" and other["operation_id"] != operation_id:
                raise Conflict(f"{other['verb']} {other['operation_id']} is under way on host {name}; wait for its end")


def _kind(text: str) -> LenderKind:
    try:
        return LenderKind(text)
    except ValueError:
        raise BadRequest(f"a host lends as {' or '.join(LenderKind)}, not as {text!r}") from None
