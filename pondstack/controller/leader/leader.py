"""A controller that leads: everything that one epoch's leader has and does, made at the promotion, torn down after it.

Threads: oslo.messaging's for requests ([DEFAULT] executor_thread_pool_size), one reconciler, one sanitiser, one settler
of lent memory, one that admits it, one writer of Placement, one notifier of failed guests, one keeper of host slices,
three for predictions, one for mitigations, three for quality, [controller] agent_calls for agents, one for Nova.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import futurist
import oslo_messaging
from futurist import periodics
from oslo_log import log

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
from pondstack.controller.lending.admission import Admission
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.controller.mitigation.build import Mitigations
from pondstack.controller.pool.buffer_sizer import BufferSizer
from pondstack.controller.pool.devices import DeviceRegistry
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
from pondstack.controller.workers import WakeableWorker
from pondstack.db.store import SQL
from pondstack.domain.errors import NotLeader, PondError
from pondstack.domain.rack import RackView
from pondstack.ha.candidate import Candidate
from pondstack.ledger.ledger import Ledger
from pondstack.rpc import transport as rpc
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.wire import Report
from pondstack.telemetry.notifications import start_listener

LOG = log.getLogger(__name__)

PRUNE_SECONDS = 600.0
NOTIFY_SECONDS = 5.0
"""How long close() waits for a notification under way, which may hang; the next leader sends it again."""


class Leader:
    """The leader's parts under one epoch, joined. Made by one thread; open() and close() may meet."""

    def __init__(
        self,
        resources: ControllerResources,
        candidate: Candidate,
        epoch: int,
        receiving: Callable[[], bool] = lambda: True,
        warm_view: Callable[[], RackView] | None = None,
    ) -> None:
        """`receiving()`: whether the broker's messages reach this controller, so that an agent's silence is its own.
        `warm_view()`: the replica of the rack, which costs no read of the whole ledger.
        """
        self._conf = conf = resources.conf
        self._resources = resources
        self._candidate = candidate
        self._receiving = receiving
        self.epoch = epoch
        self.reader = resources.reader
        self.ledger = self._make_ledger()
        self.gate = Gate(self._check)
        self.devices = DeviceRegistry(self.ledger, resources.specs, resources.device, resources.clock)
        self._executor = futurist.ThreadPoolExecutor(max_workers=conf.controller.agent_calls)
        self._agents = self._make_agents(conf.controller.agent_timeout_seconds)
        self._closing = threading.Event()
        self._inventory = self._make_inventory()
        placement = resources.placement
        self._lent_inventory = None if placement is None else LendingInventory(placement, self.ledger)
        self._remote_claims = None if placement is None else RemoteClaims(placement)
        self._remover = Remover(self.ledger, self.reader.rack, self.devices, resources.placement, self._inventory)
        self._failures = FailureNotifier(self.ledger, resources.notify_failed)
        self._sanitizer = self._make_sanitizer()
        self._sizer = BufferSizer(self.ledger, self.reader.rack, conf.controller, self._publish)
        self._settler = self._make_settler()
        self._admission = self._make_admission()
        self._admitter = None if self._admission is None else WakeableWorker("admission", self._admission.run)
        self._notifier = WakeableWorker("notifier", self._failures.run)
        self._host_slices = self._make_host_slices()
        self._publisher = self._make_publisher()
        self.predictions = Predictions(resources, epoch, self._closing.is_set)

        intake = ReportIntake(
            self.ledger, sanitize=self._sanitizer.wake, publish=self._publish, memory=self.devices.memory
        )
        self.reconciler = self._make_reconciler(intake)
        view = warm_view or self.reader.rack
        self._splits = make_splits(conf, resources.database, self.ledger, view, self._claims, self.predictions)
        self.mitigations = Mitigations(resources, self.ledger, self._agents, self._executor, self._splits, self.gate)
        self.quality = Quality(resources, self.ledger, self.gate, self.mitigations, self.predictions.sensitivity)
        self._endpoints = [
            self._make_endpoint(intake),
            SplitEndpoint(splits=self._splits, gate=self.gate),
            self._make_lending_endpoint(),
            RemovalEndpoint(remover=self._remover, publish=self._publish, gate=self.gate),
            HostEndpoint(ledger=self.ledger, agents=self._agents, changed=self._settled, gate=self.gate),
            ModelEndpoint(ledger=self.ledger, changed=self.predictions.wake, gate=self.gate),
            ProjectEndpoint(ledger=self.ledger, changed=self._splits.projects_changed, gate=self.gate),
            self.mitigations.endpoint,
            self.quality.endpoint,
        ]

        self._lock = threading.Lock()
        self._servers: list[Any] = []
        self._periodic: Any = None

    def _check(self) -> None:
        """Raise NotLeader unless the candidate leads, under this epoch, and is sure of it."""
        self._candidate.check()
        if self._candidate.epoch != self.epoch:
            raise NotLeader(f"epoch {self.epoch} has ended; call again, the leader answers")

    # What it is made of

    def _make_ledger(self) -> Ledger:
        return Ledger(
            self._resources.database,
            self.epoch,
            self._conf.controller.agent_down_seconds,
            lease_seconds=self._conf.ha.lease_seconds,
            clock=self._resources.clock,
            renewed=self._candidate.renewed,
            store=SQL,
        )

    def _make_agents(self, timeout: float) -> AgentAPI:
        return AgentAPI(self._resources.transport, timeout_seconds=timeout, monitor_seconds=max(1, int(timeout / 2)))

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
        )
        return WakeableWorker("settler", settler.run)

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

    def _make_endpoint(self, intake: ReportIntake) -> LeaderEndpoint:
        resources, down_seconds = self._resources, self._conf.controller.agent_down_seconds
        return LeaderEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            intake=intake,
            reconciler=self.reconciler,
            splits=self._splits,
            shortages=Shortages(self.ledger, self.reader.rack, self._claims, down_seconds),
            down_seconds=down_seconds,
            publish=self._publish,
            store_samples=resources.telemetry.write,
            gate=self.gate,
        )

    def _make_lending_endpoint(self) -> LendingEndpoint:
        return LendingEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            lenders=Lenders(self.ledger, self._agents, self._settler.wake),
            agents=self._agents,
            gate=self.gate,
            claims=self._remote_claims,
            admit=None if self._admitter is None else self._admitter.wake,
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

    def open(self) -> None:
        """Take the lead: fence devices and agents by the epoch, reconcile with agents' reports, then answer requests.

        Raises NotLeader when the lead is lost meanwhile, Unavailable.
        """
        started = time.monotonic()
        self.devices.register()
        self._check()
        seconds = self._conf.ha.promotion_report_seconds
        agents = self._make_agents(seconds)

        def report_of(host: str) -> Report:
            return agents.report(host, epoch=self.epoch)

        self.reconciler.reconcile_at_promotion(report_of, seconds)
        self._check()
        target = rpc.controller_target(self._conf.controller.name)
        server = oslo_messaging.get_rpc_server(self._resources.transport, target, self._endpoints, executor="threading")
        server.start()
        self._add_server(server)
        LOG.info(
            "Epoch %d: serving %d pool(s), %.0f ms after the election",
            self.epoch,
            len(self.devices.uuids()),
            (time.monotonic() - started) * 1000,
        )
        self._start_background()

    def _add_server(self, server: Any) -> None:
        """Have close() end a server that runs; one that came up after it is ended here."""
        with self._lock:
            if not self._closing.is_set():
                self._servers.append(server)
                return
        server.stop()
        server.wait()

    def _start_background(self) -> None:
        if self._closing.is_set():
            return
        self._splits.start()
        self._sanitizer.start()
        self._settler.start()
        if self._admitter is not None:
            self._admitter.start()
        self._notifier.start()
        self._host_slices.start()
        if self._publisher is not None:
            self._publisher.start()
        for part in (self.predictions, self.mitigations, self.quality):
            part.start()
        periodic = self._make_periodic()
        with self._lock:
            if self._closing.is_set():
                return
            self._periodic = periodic
        threading.Thread(target=periodic.start, name="reconciler", daemon=True).start()
        if self._conf.nova.notifications:
            listener = start_listener(self._conf, self.reconciler.hint, self._resources.history.record)
            if listener is not None:
                self._add_server(listener)

    def _make_periodic(self) -> Any:
        group = self._conf.controller

        @periodics.periodic(spacing=group.reconcile_interval_seconds, run_immediately=True)
        def reconcile() -> None:
            if self._receiving():
                self._guarded(self._sizer.run)
                self._guarded(self.reconciler.run)

        @periodics.periodic(spacing=group.resync_interval_seconds)
        def resync() -> None:
            if self._inventory is not None:
                self._inventory.forget()
                self._publish()
            if self._lent_inventory is not None:
                self._lent_inventory.forget()
                self._settler.wake()
            if self._admission is not None:
                self._admission.forget()

        @periodics.periodic(spacing=PRUNE_SECONDS, run_immediately=True)
        def prune() -> None:
            keep_seconds = (group.operations_keep_seconds, self._conf.mitigation.keep_seconds)
            self._guarded(lambda: self.ledger.prune(*keep_seconds))
            self._guarded(self._resources.telemetry.tidy)
            self._guarded(self._resources.history.tidy)

        return periodics.PeriodicWorker([(task, (), {}) for task in (reconcile, resync, prune)])

    def _guarded(self, task: Callable[[], Any]) -> None:
        if self._closing.is_set():
            return
        try:
            task()
        except NotLeader as error:
            LOG.info("A round ended with its epoch: %s", error)
            self._candidate.lost(self.epoch, error.message)
        except PondError as error:
            LOG.warning("A round was skipped: %s", error)

    def close(self) -> None:
        """Refuse new requests, let those under way end, end the threads; idempotent."""
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
        self.gate.shut(f"epoch {self.epoch} of controller {self._conf.controller.name} has ended")
        for server in self._servers:
            server.stop()
        for server in self._servers:
            server.wait()
        if self._periodic is not None:
            self._periodic.stop()
            self._periodic.wait()
        self._splits.stop()
        self._sanitizer.stop()
        self._settler.stop()
        if self._admitter is not None:
            self._admitter.stop()
        self._notifier.stop(NOTIFY_SECONDS)
        self._host_slices.stop()
        if self._publisher is not None:
            self._publisher.stop()
        for part in (self.quality, self.predictions, self.mitigations):
            part.stop()
        self._executor.shutdown()
        LOG.info("Epoch %d: all parts have ended", self.epoch)
