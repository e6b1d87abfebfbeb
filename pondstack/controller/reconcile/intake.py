"""What hosts say of their own memory, written to the ledger: reports, and the releases that they tell of.

A release takes memory from its owner, so that no message is taken for it that comes unasked: a call or a heartbeat
that tells of one has the leader ask the host, and only the answer settles it. Who tells may be anybody on the bus; who
answers has the host's own queue. The answer is believed for what it lists as released: its agent never has that online
again, so that an old answer proves as much as a new one, and one from before the attach proves nothing.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import NAMESPACE_OID, uuid4, uuid5

import oslo_messaging
from oslo_log import log

from pondstack.domain.errors import AgentUnavailable, Conflict, NotLeader, PondError, StaleEpoch
from pondstack.domain.zeroing import refusal
from pondstack.ledger.hosts import Receipt
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.wire import Report

LOG = log.getLogger(__name__)


class Executor(Protocol):
    """Runs what no request waits for."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Run a function later."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a host is told of its report: settled releases, and whether its kernel is to tier (None: no order)."""

    releases: list[str]
    tiering: bool | None


class ReportIntake:
    """Takes reports and releases over; thread-safe.

    `report_of`: asks a host for its report. `executor`: where hosts are asked that no request waits for. `sanitize` and
    `publish` wake the sanitiser and the writer of Placement.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        report_of: Callable[[str], Report],
        executor: Executor,
        sanitize: Callable[[], object],
        publish: Callable[[], object],
        memory: Callable[[str], str | None] = lambda _uuid: None,
    ) -> None:
        """`memory`: of a pool's device (domain.zeroing.DeviceMemory), None while it is not registered."""
        self._ledger = ledger
        self._report_of = report_of
        self._executor = executor
        self._memory = memory
        self._refused: dict[tuple[str, str], str] = {}
        self._sanitize = sanitize
        self._publish = publish
        self._lock = threading.Lock()
        self._asking: dict[str, Any] = {}
        self._waiting: set[str] = set()

    # Reports

    def receive(self, report: Report) -> Settled:
        """Write a report down that was sent unasked; the host is asked in the background for what it has released."""
        receipt = self._write(report)
        # The host forgets what is settled: a leader that is none any more, or reads what is old, must not say so.
        waiting = self._unsettled(report.host, report.released, fenced=True)
        if waiting:
            self._ask_soon(report.host)
        return Settled([uuid for uuid in report.released if uuid not in waiting], receipt.tiering_on)

    def receive_answer(self, host: str, report: Report) -> bool:
        """Write down what a host answered to this leader, and settle the releases that it lists.

        Returns whether it is the host's newest report now. Raises Conflict when it is another host's.
        """
        return self._take_answer(host, report, {})[0].accepted

    def _take_answer(self, host: str, report: Report, operations: Mapping[str, str]) -> tuple[Receipt, set[str]]:
        """Return what the report changed, and which releases it settled; raises Conflict.

        `operations`: by allocation, under which operation ids; one of its own for the others.
        """
        if report.host != host:
            raise Conflict(f"the agent of {host} answered with a report of {report.host}; look at its [DEFAULT] host")
        receipt = self._write(report)
        settled: set[str] = set()
        online = {item.allocation_uuid for item in report.attached}
        for uuid in self._unsettled(host, report.released):
            if uuid not in online:
                # One operation per release, however often it is told.
                own = str(uuid5(NAMESPACE_OID, f"pondstack release {host} {uuid}"))
                operation, written_back = operations.get(uuid, own), uuid in report.written_back
                not_zero = report.not_zero.get(uuid, ())
                self._release(operation, uuid, host, not_zero=not_zero, written_back=written_back)
                settled.add(uuid)
        return receipt, settled

    def _write(self, report: Report) -> Receipt:
        report = replace(report, pools=tuple(pool for pool in report.pools if self._reaches(report, pool)))
        receipt = self._ledger.hosts.heartbeat(report.to_wire())
        if receipt.reach_changed:
            self._publish()
        return receipt

    def _reaches(self, report: Report, pool: str) -> bool:
        """Tell whether a host may have slices of a pool that it reaches: somebody must zero them."""
        why = refusal(self._memory(pool), report.zeroing.get(pool))
        if why and self._refused.get((report.host, pool)) != why:
            LOG.error("Host %s gets nothing of pool %s: %s", report.host, pool, why)
        if why:
            self._refused[report.host, pool] = why
        else:
            self._refused.pop((report.host, pool), None)
        return not why

    # Releases

    def release(self, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Settle a release that a host is said to have told of, once the host itself answers that it has.

        An allocation that is not known is settled; either is in the journal. Raises Conflict when it is another host's,
        or the host does not say that it released it, AgentUnavailable when the host does not answer, NotLeader; nothing
        has changed then.
        """
        if self._is_held(allocation_uuid, host):
            with self._lock:
                turn = self._asking.setdefault(host, threading.Lock())
            with turn:
                # The host's answer to somebody else may have listed this one, too.
                if self._is_held(allocation_uuid, host):
                    if allocation_uuid in self._ask(host, {allocation_uuid: operation_id}):
                        return
                    LOG.warning(
                        "Host %s does not confirm the release of allocation %s: nothing changes", host, allocation_uuid
                    )
        self._ledger.slices.note_release(operation_id, allocation_uuid, host)

    def undo_assignment(self, allocation_uuid: str, host: str) -> None:
        """Take an allocation back that its host was never told of; nothing changes if it has acknowledged any of it."""
        self._release(str(uuid4()), allocation_uuid, host, unacknowledged=True)

    def _release(
        self,
        operation_id: str,
        allocation_uuid: str,
        host: str,
        *,
        unacknowledged: bool = False,
        not_zero: Collection[int] = (),
        written_back: bool = False,
    ) -> None:
        """Write down that a host holds an allocation no more; its slices are sanitised in the background."""
        if not_zero:
            LOG.error("Host %s found slices %s of allocation %s not zero", host, sorted(not_zero), allocation_uuid)
        pool_uuid = self._ledger.slices.release(
            operation_id,
            allocation_uuid,
            host,
            unacknowledged=unacknowledged,
            not_zero=not_zero,
            written_back=written_back,
        )
        if pool_uuid is not None:
            self._sanitize()
            self._publish()

    def _ask(self, host: str, operations: Mapping[str, str]) -> set[str]:
        """Ask a host for a report and take it over; returns which releases that settled."""
        try:
            report = self._report_of(host)
        except StaleEpoch as error:
            raise NotLeader(f"host {host} obeys another controller: {error.message}") from error
        except oslo_messaging.MessagingException as error:
            raise AgentUnavailable(
                f"the agent of {host} gave this controller no report ({type(error).__name__}), and nothing is released "
                "without; look at its log"
            ) from error
        return self._take_answer(host, report, operations)[1]

    def _ask_soon(self, host: str) -> None:
        """Ask a host in the background; a host that waits for its turn already is asked once."""
        with self._lock:
            if host in self._waiting:
                return
            self._waiting.add(host)
        self._executor.submit(self._ask_in_background, host)

    def _ask_in_background(self, host: str) -> None:
        with self._lock:
            self._waiting.discard(host)
        try:
            self._ask(host, {})
        except PondError as error:
            LOG.warning("Releases of host %s wait for its next heartbeat: %s", host, error)

    def _is_held(self, allocation_uuid: str, host: str) -> bool:
        """Return whether a host has an allocation in the ledger; raises Conflict when another one has."""
        owner = self._ledger.slices.owners([allocation_uuid]).get(allocation_uuid)
        if owner not in (None, host):
            raise Conflict(f"allocation {allocation_uuid} belongs to host {owner}, not to {host}")
        return owner is not None

    def _unsettled(self, host: str, released: Iterable[str], *, fenced: bool = False) -> list[str]:
        """Return which of the releases that a host tells of the ledger does not know yet."""
        told = list(released)
        owners = self._ledger.slices.owners(told, fenced=fenced) if told else {}
        for uuid in told:
            if owners.get(uuid, host) != host:
                LOG.warning("Host %s releases allocation %s of %s, which changes nothing", host, uuid, owners[uuid])
        return [uuid for uuid in told if owners.get(uuid) == host]
