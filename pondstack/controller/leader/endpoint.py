"""RPC endpoint of the leading pondstack-controller: what pondstack.rpc.controller_api.ControllerAPI asks the leader."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging
from oslo_log import log

from pondstack.controller.gate import Gate, gated
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.hand_overs import HandOvers
from pondstack.controller.pool.shortages import Shortages
from pondstack.controller.pool.snapshot import make_snapshot
from pondstack.controller.pool.split_service import SplitService
from pondstack.controller.reconcile.findings import Severity
from pondstack.controller.reconcile.intake import ReportIntake
from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import PondError, PoolShortage
from pondstack.domain.model import Extent
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.controller_api import HAND_OVER_VERSION
from pondstack.rpc.wire import Grant, Report, Sample, assign_request

LOG = log.getLogger(__name__)


class LeaderEndpoint:
    """What the leader answers. Errors are of pondstack.domain.errors; native threads, one request each.

    `publish` wakes the writer of Placement; `store_samples` stores what a host measured; `gate` refuses requests once
    this controller is not sure any more that it leads.
    """

    target = oslo_messaging.Target(version=HAND_OVER_VERSION)

    def __init__(
        self,
        *,
        ledger: Ledger,
        reader: SqlReader,
        devices: DeviceRegistry,
        hand_overs: HandOvers,
        intake: ReportIntake,
        reconciler: Reconciler,
        splits: SplitService,
        shortages: Shortages,
        down_seconds: float,
        publish: Callable[[], None],
        store_samples: Callable[[str, Sequence[Sample]], object] = lambda _host, _samples: None,
        revoked: Callable[[], Mapping[str, float]] = dict,
        gate: Gate | None = None,
    ) -> None:
        self.gate = gate or Gate()
        self._ledger = ledger
        self._reader = reader
        self._devices = devices
        self._hand_overs = hand_overs
        self._intake = intake
        self._reconciler = reconciler
        self._splits = splits
        self._shortages = shortages
        self._down = down_seconds
        self._publish = publish
        self._store_samples = store_samples
        self._revoked = revoked

    @gated
    def assign(self, _context: Any, *, operation_id: str, **request: Any) -> dict[str, Any]:
        """Take free slices and let the host in at the device; a repetition gets the same grant.

        `request`: the fields of AssignRequest. With a source (since 1.22) what the consumer has there is handed over
        where that may be: the grant says so. `write_back` came with 1.23.
        """
        wanted = assign_request(**request)
        host, pool_uuid = wanted.host, wanted.pool_uuid
        allowed = self._hand_overs.allowed(wanted)
        try:
            effect = self._ledger.slices.assign(operation_id, wanted, hands_over=allowed)
        except PoolShortage as error:
            raise self._shortages.judge(operation_id, wanted, error) from None
        extents = tuple(Extent(item["start"], item["count"]) for item in effect["extents"])
        uuid, handed = effect["allocation_uuid"], bool(effect.get("handed"))
        try:
            if handed:
                self._hand_overs.let_in(effect, host, extents, epoch=self._ledger.epoch)
            else:
                self._devices.get(pool_uuid).grant(host, extents, tag=uuid, epoch=self._ledger.epoch)
        except PondError as error:
            LOG.error("Pool %s does not let host %s in to allocation %s: %s", pool_uuid, host, uuid, error)
            # The host does not know of it, so it is released; but not what the host has online: a request that was
            # long under way may be the repetition of one that was answered and acknowledged since.
            self._intake.undo_assignment(uuid, host)
            raise
        about = self._devices.about(pool_uuid)
        return Grant(
            allocation_uuid=uuid,
            consumer_uuid=wanted.consumer_uuid,
            host=host,
            pool_uuid=pool_uuid,
            pool_name=about.name,
            device=dict(about.address),
            slice_mib=about.slice_mib,
            extents=extents,
            epoch=self._ledger.epoch,
            purpose=str(wanted.purpose),
            handed=handed,
        ).to_wire()

    @gated
    def acknowledge(self, _context: Any, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Note that the host has onlined an allocation."""
        self._ledger.slices.acknowledge(operation_id, allocation_uuid, host)

    @gated
    def take_up(self, _context: Any, *, allocation_uuid: str, host: str) -> bool:
        """Return whether what was handed over is its host's alone, and whole (since 1.23)."""
        return self._ledger.slices.taken_up(allocation_uuid, host)

    @gated
    def release(self, _context: Any, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Settle a release: the host itself is asked, and its slices are sanitised in the background."""
        self._intake.release(operation_id, allocation_uuid, host)

    @gated
    def heartbeat(self, _context: Any, *, report: dict[str, Any]) -> dict[str, Any]:
        """Take a report over; see ControllerAPI.heartbeat for the answer."""
        value = Report.from_wire(report)
        settled = self._intake.receive(value)
        return {
            "epoch": self._ledger.epoch,
            "forget": settled.releases,
            "pools": self._pools(value),
            "tiering": settled.tiering,
            "revoked": dict(self._revoked()),
        }

    def _pools(self, report: Report) -> dict[str, Any]:
        found = {uuid: self._devices.about(uuid) for uuid in set(report.pools) & set(self._devices.uuids())}
        return {
            uuid: {
                "name": about.name,
                "device": dict(about.address),
                "slice_mib": about.slice_mib,
                "slices_total": about.slices_total,
            }
            for uuid, about in found.items()
        }

    @gated
    def telemetry(self, _context: Any, *, host: str, samples: Sequence[dict[str, Any]]) -> None:
        """Store what a host measured (since 1.1); no part of the journal, so that repeating it is not harmless."""
        self._store_samples(host, [Sample.from_wire(item) for item in samples])

    @gated
    def get_split(self, _context: Any, *, features: dict[str, Any]) -> dict[str, Any]:
        """Return the split of a VM, to a scheduler of the former release: newer ones decide by split_view."""
        return self._splits.split(features).to_wire()

    @gated
    def snapshot(self, _context: Any) -> dict[str, Any]:
        """Return the scheduler's view."""
        return make_snapshot(
            self._reader.rack(),
            epoch=self._ledger.epoch,
            down_seconds=self._down,
        ).to_wire()

    @gated
    def set_host(
        self,
        _context: Any,
        *,
        name: str,
        enabled: bool,
        reason: str,
        generation: int | None,
        operation_id: str | None = None,
    ) -> dict[str, Any]:
        """Enable or disable a host for new pool memory; an N-1 client sends no operation id."""
        now = self._ledger.hosts.set(name, enabled, reason, generation, operation_id)
        return {
            "name": name,
            "enabled": enabled,
            "disabled_reason": "" if enabled else reason,
            "generation": now,
        }

    @gated
    def fence_host(
        self,
        _context: Any,
        *,
        name: str,
        reason: str,
        force: bool,
        generation: int | None = None,
        operation_id: str | None = None,
    ) -> dict[str, Any]:
        """Take everything from a host that an operator says is dead; answers how much its devices still hold back.

        An N-1 client sends no generation.
        """
        self._ledger.failures.fence_host(name, reason, force=force, generation=generation, operation_id=operation_id)
        LOG.warning("Host %s is fenced: %s", name, reason)
        self._reconciler.fence(name)
        self._publish()
        host = self._reader.host(name)
        return {"name": name, "fenced": host.fenced, "pool_mib": host.pool_mib}

    @gated
    def unfence_host(self, _context: Any, *, name: str, operation_id: str | None = None) -> dict[str, Any]:
        """Let a host that was fenced take part again."""
        self._ledger.failures.unfence_host(name, operation_id)
        LOG.info("Host %s is unfenced", name)
        self._publish()
        return {"name": name, "fenced": self._reader.host(name).fenced}

    @gated
    def audit(self, _context: Any, *, repair: bool) -> dict[str, Any]:
        """Compare everything now; see ControllerAPI.audit for the answer."""
        findings = self._reconciler.audit(repair)
        clean = all(item["severity"] == Severity.INFO for item in findings)
        return {
            "clean": clean,
            "findings": findings,
            "totals": totals(self._reader.rack(), self._reconciler.claimed_mib()),
        }


def totals(view: RackView, claimed_mib: int | None) -> dict[str, int | None]:
    """Return an audit's counts; `claimed_mib` is what Placement holds, None when it was not asked."""
    counts = {f"slices_{state}": 0 for state in SliceState}
    for aged in view.slices:
        counts[f"slices_{aged.item.state}"] += 1
    return {
        "pools": len(view.pools),
        "hosts": len(view.hosts),
        "allocations": len(view.allocations),
        "slices": len(view.slices),
        **counts,
        "claimed_mib": claimed_mib,
    }
