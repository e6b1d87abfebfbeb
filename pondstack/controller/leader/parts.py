"""What one epoch's leader works with: every part with its thread, made and joined; begins and ends with the leader.

Threads: one sanitiser, one settler of lent memory, one that admits it, one writer of Placement, one notifier of failed
guests, one keeper of host slices, three for predictions, one for mitigations, one for hosts that sleep, three for
quality, two for consolidation, [controller] agent_calls for agents.
"""

import threading
from collections.abc import Callable
from typing import Any

import futurist

from pondstack.controller.consolidation.build import Consolidation
from pondstack.controller.gate import Gate
from pondstack.controller.history.predictions import Predictions
from pondstack.controller.leader.endpoint import LeaderEndpoint
from pondstack.controller.leader.failure_notifier import FailureNotifier
from pondstack.controller.leader.host_endpoint import HostEndpoint
from pondstack.controller.leader.model_endpoint import ModelEndpoint
from pondstack.controller.leader.project_endpoint import ProjectEndpoint
from pondstack.controller.leader.quality import Quality
from pondstack.controller.leader.removal_endpoint import RemovalEndpoint
from pondstack.controller.leader.split_endpoint import SplitEndpoint
from pondstack.controller.lending.active_hosts import ActiveHosts
from pondstack.controller.lending.admission import Admission, Claims
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.host_lends import HostLends
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.controller.mitigation.build import Mitigations
from pondstack.controller.planner.jobs import PlannerJobs
from pondstack.controller.pool.buffer_sizer import BufferSizer
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.hand_overs import HandOvers
from pondstack.controller.pool.host_slices import HostSliceKeeper
from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.pool.remover import Remover
from pondstack.controller.pool.returns import PoolClaims
from pondstack.controller.pool.sanitizer import Sanitizer
from pondstack.controller.pool.shortages import Shortages
from pondstack.controller.pool.split_service import make_splits
from pondstack.controller.reconcile.claims import read_claims
from pondstack.controller.reconcile.intake import ReportIntake
from pondstack.controller.reconcile.observation import Limits
from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack.controller.resources import ControllerResources
from pondstack.controller.sleep.build import HostSleeps
from pondstack.controller.workers import WakeableWorker
from pondstack.db.store import SQL
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.rack import RackView
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI

NOTIFY_SECONDS = 5.0
"""How long stop() waits for a notification under way, which may hang; the next leader sends it again."""


class LeaderParts:
    """All of them under one epoch. `endpoints`: what answers requests."""

    def __init__(
        self,
        resources: ControllerResources,
        epoch: int,
        gate: Gate,
        *,
        renewed: Callable[[int, float], object],
        closing: threading.Event,
        warm_view: Callable[[], RackView] | None,
    ) -> None:
        """`renewed`: as the ledger has it; `closing`: set when their leader begins to end; `warm_view`: as Leader's."""
        self._conf = conf = resources.conf
        self._resources = resources
        self._epoch, self._renewed, self._closing, self._gate = epoch, renewed, closing, gate
        self.reader = resources.reader
        self.ledger = self._make_ledger()
        self.devices = DeviceRegistry(self.ledger, resources.specs, resources.device, resources.clock)
        self._executor = futurist.ThreadPoolExecutor(max_workers=conf.controller.agent_calls)
        self._agents = self.make_agents(conf.controller.agent_timeout_seconds)
        self._inventory = self._make_inventory()
        placement = resources.placement
        self._lent_inventory = None if placement is None else LendingInventory(placement, self.ledger)
        self._remote_claims = None if placement is None else RemoteClaims(placement)
        self._remover = Remover(self.ledger, self.reader.rack, self.devices, resources.placement, self._inventory)
        self._failures = FailureNotifier(self.ledger, resources.notify_failed)
        self._sanitizer = self._make_sanitizer()
        self.sizer = BufferSizer(self.ledger, self.reader.rack, conf.controller, self._publish)
        self._settler = self._make_settler()
        self._admission = self._make_admission()
        self._admitter = None if self._admission is None else WakeableWorker("admission", self._admission.run)
        self._notifier = WakeableWorker("notifier", self._failures.run)
        self._host_slices = self._make_host_slices()
        self._active_hosts = self._make_active_hosts()
        self._publisher = self._make_publisher()
        self.predictions = Predictions(resources, epoch, self._closing.is_set)

        intake = self._make_intake()
        self.reconciler = self._make_reconciler(intake)
        view = warm_view or self.reader.rack
        self._splits = make_splits(conf, resources.database, self.ledger, view, self._claims, self.predictions)
        self.mitigations = Mitigations(resources, self.ledger, self._agents, self._executor, self._splits, gate)
        self.quality = Quality(resources, self.ledger, gate, self.mitigations, self.predictions.sensitivity)
        self._lends = HostLends(self.ledger, self._agents, self._admit)
        self.sleeps = self._make_sleeps()
        self.consolidation = Consolidation(resources, self.ledger, self._executor, gate, self.sleeps, self._lends)
        self.planner = PlannerJobs(resources, self.ledger, gate)
        self.endpoints = self._make_endpoints(intake)

    # What it is made of

    def _make_ledger(self) -> Ledger:
        return Ledger(
            self._resources.database,
            self._epoch,
            self._conf.controller.agent_down_seconds,
            lease_seconds=self._conf.ha.lease_seconds,
            clock=self._resources.clock,
            renewed=self._renewed,
            store=SQL,
        )

    def make_agents(self, timeout: float) -> AgentAPI:
        """Return a client of the agents whose calls take so many seconds at most."""
        return AgentAPI(self._resources.bus, timeout_seconds=timeout, monitor_seconds=max(2, int(timeout / 2)))

    def _make_inventory(self) -> InventorySync | None:
        placement = self._resources.placement
        return None if placement is None else InventorySync(placement, self.ledger)

    def _make_publisher(self) -> WakeableWorker | None:
        inventory = self._inventory
        if inventory is None:
            return None
        settle = self._conf.controller.inventory_settle_seconds
        return WakeableWorker("inventory", lambda: inventory.refresh(self.reader.rack), settle)

    def _make_sanitizer(self) -> WakeableWorker:
        sanitizer = Sanitizer(self.ledger, self.reader, self.devices, self._publish, lambda: self._sanitizer.stopping)
        return WakeableWorker("sanitizer", sanitizer.drain)

    def _make_settler(self) -> WakeableWorker:
        settler = BufferSettler(
            self.ledger,
            self._agents,
            self._lent_inventory,
            stopping=lambda: self._settler.stopping,
            abandoned_seconds=lambda: float(self._conf.controller.assign_timeout_seconds),
            sealer=self._resources.sealer,
        )
        return WakeableWorker("settler", settler.run)

    def _make_active_hosts(self) -> ActiveHosts:
        placement = self._resources.placement
        return ActiveHosts(
            self.ledger,
            self._agents,
            self.reader.rack,
            self._conf.controller.agent_down_seconds,
            claims=None if placement is None else Claims(placement, self.ledger.renew),
            admit=None if self._admitter is None else self._admitter.wake,
            clock=self._resources.clock,
        )

    def _make_admission(self) -> Admission | None:
        placement = self._resources.placement
        if placement is None:
            return None
        return Admission(
            self.ledger,
            self._agents,
            placement,
            self.reader.rack,
            self._settler.wake,
            stopping=self._closing.is_set,
        )

    def _make_host_slices(self) -> WakeableWorker:
        keeper = HostSliceKeeper(
            self.ledger,
            self.reader.rack,
            self._agents,
            self._resources.placement,
            self._slices_moved,
            self._conf.controller.agent_down_seconds,
            lambda: self._host_slices.stopping,
        )
        return WakeableWorker("host slices", keeper.run)

    def _make_sleeps(self) -> HostSleeps:
        return HostSleeps(
            self._resources,
            self.ledger,
            self.make_agents,
            self._executor,
            self._gate,
            lends=self._lends,
            admit=self._admit,
            fence=self._fence,
            changed=self._sleep_changed,
        )

    def _sleep_changed(self, item: HostSleep) -> None:
        self._resources.counts.host_sleep_changed(item.state)
        self._settled()

    def _admit(self) -> None:
        """Have what is to be lent go on."""
        if self._admitter is not None:
            self._admitter.wake()

    def _fence(self, host: str, reason: str) -> None:
        """Take from the rack what a host served that died in its sleep."""
        self.ledger.failures.fence_host(host, reason, force=False)
        self.reconciler.fence(host)
        self._publish()

    def _make_intake(self) -> ReportIntake:
        return ReportIntake(
            self.ledger,
            report_of=lambda host: self._agents.report(host, epoch=self._epoch),
            executor=self._executor,
            sanitize=self._sanitizer.wake,
            publish=self._publish,
            memory=self.devices.memory,
        )

    def _make_reconciler(self, intake: ReportIntake) -> Reconciler:
        return Reconciler(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            agents=self._agents,
            placement=self._resources.placement,
            inventory=self._inventory,
            lent_inventory=self._lent_inventory,
            remote_claims=self._remote_claims,
            intake=intake,
            limits=lambda: Limits.of(self._conf),
            mitigations=lambda: self.mitigations.unended(),
            executor=self._executor,
            settled=self._settled,
            remover=self._remover,
            notify=self._failures.wake,
        )

    def _make_endpoints(self, intake: ReportIntake) -> list[Any]:
        ledger, gate = self.ledger, self._gate
        return [
            self._make_endpoint(intake),
            SplitEndpoint(splits=self._splits, gate=gate),
            self._make_lending_endpoint(),
            RemovalEndpoint(remover=self._remover, publish=self._publish, gate=gate),
            HostEndpoint(ledger=ledger, agents=self._agents, changed=self._settled, gate=gate),
            ModelEndpoint(ledger=ledger, changed=self.predictions.wake, gate=gate),
            ProjectEndpoint(ledger=ledger, changed=self._splits.projects_changed, gate=gate),
            self.mitigations.endpoint,
            self.sleeps.endpoint,
            self.quality.endpoint,
            self.consolidation.endpoint,
            self.planner.endpoint,
        ]

    def _make_endpoint(self, intake: ReportIntake) -> LeaderEndpoint:
        resources, down_seconds = self._resources, self._conf.controller.agent_down_seconds
        return LeaderEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            hand_overs=HandOvers(self.devices, self.reader, resources.placement),
            intake=intake,
            reconciler=self.reconciler,
            splits=self._splits,
            shortages=Shortages(self.ledger, self.reader.rack, self._claims, down_seconds),
            down_seconds=down_seconds,
            publish=self._publish,
            store_samples=resources.telemetry.write,
            revoked=resources.bus.revoked,
            gate=self._gate,
        )

    def _make_lending_endpoint(self) -> LendingEndpoint:
        return LendingEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            lenders=Lenders(self.ledger, self._agents, self._settler.wake, self._resources.sealer),
            agents=self._agents,
            gate=self._gate,
            claims=self._remote_claims,
            admit=None if self._admitter is None else self._admitter.wake,
            active_hosts=lambda: self._active_hosts if self._conf.controller.ask_active_hosts else None,
            gave_way=self._resources.counts.gave_way,
            clock=self._resources.clock,
        )

    def _claims(self, view: RackView) -> PoolClaims:
        placement = self._resources.placement
        claims = None if placement is None else read_claims(placement, view, ())
        return {} if claims is None else claims.pools

    def _publish(self) -> None:
        if self._publisher is not None:
            self._publisher.wake()

    def _slices_moved(self) -> None:
        self._sanitizer.wake()
        self._publish()

    def _settled(self) -> None:
        self._sanitizer.wake()
        self._host_slices.wake()
        self._settler.wake()
        if self._admitter is not None:
            self._admitter.wake()
        self._notifier.wake()
        self._publish()

    # What becomes of it

    def start(self) -> None:
        """Start the threads on which answers and free memory depend."""
        self._splits.start()
        self._sanitizer.start()
        self._settler.start()
        if self._admitter is not None:
            self._admitter.start()
        self._notifier.start()
        self._host_slices.start()
        if self._publisher is not None:
            self._publisher.start()

    def start_watching(self) -> None:
        """Start the threads of what looks after the rack by itself, every so often.

        Until the predictions have begun, schedulers decide by what the former leader told them.
        """
        for part in (self.predictions, self.mitigations, self.quality, self.sleeps, self.consolidation, self.planner):
            part.start()

    def resync(self) -> None:
        """Forget what Placement is known to have, and write all of it again."""
        if self._inventory is not None:
            self._inventory.forget()
            self._publish()
        if self._lent_inventory is not None:
            self._lent_inventory.forget()
            self._settler.wake()
        if self._admission is not None:
            self._admission.forget()

    def stop(self) -> None:
        """End the threads, those that were never started included."""
        self._splits.stop()
        self._sanitizer.stop()
        self._settler.stop()
        if self._admitter is not None:
            self._admitter.stop()
        self._notifier.stop(NOTIFY_SECONDS)
        self._host_slices.stop()
        if self._publisher is not None:
            self._publisher.stop()
        for part in (self.planner, self.consolidation, self.sleeps, self.quality, self.predictions, self.mitigations):
            part.stop()
        self._executor.shutdown()
