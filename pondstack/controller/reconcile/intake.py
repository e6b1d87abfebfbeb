"""What hosts say of their own memory, written to the ledger: reports, and the releases that they tell of.

A report comes with a heartbeat, or as the answer to the reconciler. A release comes in a call of its own too.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from uuid import NAMESPACE_OID, uuid5

from oslo_log import log

from pondstack.domain.errors import Conflict
from pondstack.domain.zeroing import refusal
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.wire import Report

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settled:
    """What a host is told of its report: settled releases, and whether its kernel is to tier (None: no order)."""

    releases: list[str]
    tiering: bool | None


class ReportIntake:
    """Takes reports and releases over. `sanitize` and `publish` wake the sanitiser and the writer of Placement."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        sanitize: Callable[[], object],
        publish: Callable[[], object],
        memory: Callable[[str], str | None] = lambda _uuid: None,
    ) -> None:
        """`memory`: of a pool's device (domain.zeroing.DeviceMemory), None while it is not registered."""
        self._ledger = ledger
        self._memory = memory
        self._refused: dict[tuple[str, str], str] = {}
        self._sanitize = sanitize
        self._publish = publish

    def receive(self, report: Report) -> Settled:
        """Write a report down and settle the releases that it tells of."""
        report = replace(report, pools=tuple(pool for pool in report.pools if self._reaches(report, pool)))
        receipt = self._ledger.hosts.heartbeat(report.to_wire())
        if receipt.reach_changed:
            self._publish()
        for uuid in report.released:
            try:
                # One operation per release, however often the agent repeats it.
                operation_id = str(uuid5(NAMESPACE_OID, f"pondstack release {report.host} {uuid}"))
                self.release(operation_id, uuid, report.host, not_zero=report.not_zero.get(uuid, ()))
            except Conflict as error:
                LOG.warning("Host %s releases what is not its own, which changes nothing: %s", report.host, error)
        return Settled(list(report.released), receipt.tiering_on)

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

    def release(
        self,
        operation_id: str,
        allocation_uuid: str,
        host: str,
        *,
        unacknowledged: bool = False,
        not_zero: Collection[int] = (),
    ) -> None:
        """Write down that a host holds an allocation no more; its slices are sanitised in the background.

        `unacknowledged`: nothing changes unless the host has acknowledged none of it. `not_zero`: what it found to have
        somebody's bytes is quarantined. Raises Conflict when the allocation is another host's.
        """
        if not_zero:
            LOG.error("Host %s found slices %s of allocation %s not zero", host, sorted(not_zero), allocation_uuid)
        pool_uuid = self._ledger.slices.release(
            operation_id, allocation_uuid, host, unacknowledged=unacknowledged, not_zero=not_zero
        )
        if pool_uuid is not None:
            self._sanitize()
            self._publish()
