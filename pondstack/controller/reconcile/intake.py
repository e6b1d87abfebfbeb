"""What hosts say of their own memory, written to the ledger: reports, and the releases that they tell of.

A report comes with a heartbeat, or as the answer to the reconciler. A release comes in a call of its own too.
"""

from collections.abc import Callable, Collection
from uuid import NAMESPACE_OID, uuid5

from oslo_log import log

from pondstack.domain.errors import Conflict
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.wire import Report

LOG = log.getLogger(__name__)


class ReportIntake:
    """Takes reports and releases over. `sanitize` and `publish` wake the sanitiser and the writer of Placement."""

    def __init__(self, ledger: Ledger, *, sanitize: Callable[[], object], publish: Callable[[], object]) -> None:
        self._ledger = ledger
        self._sanitize = sanitize
        self._publish = publish

    def receive(self, report: Report) -> list[str]:
        """Write a report down and settle the releases that it tells of; returns the settled allocations."""
        if self._ledger.hosts.heartbeat(report.to_wire()).reach_changed:
            self._publish()
        for uuid in report.released:
            try:
                # One operation per release, however often the agent repeats it.
                operation_id = str(uuid5(NAMESPACE_OID, f"pondstack release {report.host} {uuid}"))
                self.release(operation_id, uuid, report.host, not_zero=report.not_zero.get(uuid, ()))
            except Conflict as error:
                LOG.warning("Host %s releases what is not its own, which changes nothing: %s", report.host, error)
        return list(report.released)

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
