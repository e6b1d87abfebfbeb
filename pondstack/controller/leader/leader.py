"""A controller that leads: everything that one epoch's leader has and does, made at the promotion, torn down after it.

Threads: oslo.messaging's for requests ([DEFAULT] executor_thread_pool_size), one reconciler, one sanitiser, one settler
of lent memory, one writer of Placement, one announcer of failed guests, [controller] agent_calls for commands to
agents, one for Nova's notifications.
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
from pondstack.controller.leader.endpoint import LeaderEndpoint
from pondstack.controller.leader.failure_notifier import FailureNotifier
from pondstack.controller.lending.endpoint import LendingEndpoint
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.lending.lenders import BufferSettler, Lenders
from pondstack.controller.pool.capacity import PoolClaims
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.pool.sanitizer import Sanitizer
from pondstack.controller.pool.split_service import SplitService
from pondstack.controller.reconcile.claims import read_claims
from pondstack.controller.reconcile.observation import Limits
from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack.controller.resources import ControllerResources
from pondstack.controller.workers import WakeableWorker
from pondstack.domain.errors import NotLeader, PondError
from pondstack.domain.rack import RackView
from pondstack.domain.sizing import StaticShare
from pondstack.ha.candidate import Candidate
from pondstack.ledger.ledger import Ledger
from pondstack.rpc import transport as rpc
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.wire import Report
from pondstack.telemetry.notifications import start_listener

LOG = log.getLogger(__name__)

PRUNE_SECONDS = 600.0
TELL_SECONDS = 5.0
"""How long an end waits for a notification under way, which the next leader sends too: it may never end."""


class Leader:
    """The leader's parts under one epoch, joined. Made by one thread; open() and close() may meet."""

    def __init__(
        self, parts: ControllerResources, candidate: Candidate, epoch: int, hears: Callable[[], bool] = lambda: True
    ) -> None:
        """`hears()`: whether the broker brings this controller anything, so that an agent's silence means something."""
        self._conf = conf = parts.conf
        self._parts = parts
        self._candidate = candidate
        self._hears = hears
        self.epoch = epoch
        self.reader = parts.reader
        self.ledger = Ledger(
            parts.database,
            epoch,
            conf.controller.agent_down_seconds,
            lease_seconds=conf.ha.lease_seconds,
            clock=parts.clock,
            renewed=candidate.renewed,
        )
        self.gate = Gate(self._check)
        self.devices = DeviceRegistry(self.ledger, parts.specs, parts.device, parts.clock)
        self._executor = futurist.ThreadPoolExecutor(max_workers=conf.controller.agent_calls)
        sanitizer = Sanitizer(
            self.ledger, self.reader, self.devices, lambda _uuid: self._publish(), lambda: self.sanitizing.stopping
        )
        self.sanitizing = WakeableWorker("sanitizer", sanitizer.drain)
        agents = self._agents(conf.controller.agent_timeout_seconds)
        lent = None if parts.placement is None else LendingInventory(parts.placement, self.ledger)
        settler = BufferSettler(
            self.ledger,
            agents,
            lent,
            stopping=lambda: self.settling.stopping,
            abandoned_seconds=lambda: float(conf.controller.assign_timeout_seconds),
        )
        self.settling = WakeableWorker("settler", settler.run)
        self.lending_manager = LendingEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            lenders=Lenders(self.ledger, agents, self.settling.wake),
            agents=agents,
            gate=self.gate,
        )
        self.announcer = FailureNotifier(self.ledger, parts.tell_failed)
        self.announcing = WakeableWorker("announcer", self.announcer.run)
        self.publishing: WakeableWorker | None = None
        self._sync: InventorySync | None = None
        if parts.placement is not None:
            sync = self._sync = InventorySync(parts.placement, self.ledger, parts.buffer_slices)
            self.publishing = WakeableWorker("inventory", lambda: sync.write(self.reader.rack()))
        self.manager = self._make_manager()
        self.reconciler = self.manager.reconciler = self._make_reconciler()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._servers: list[Any] = []
        self._periodic: Any = None

    def _check(self) -> None:
        """Raise NotLeader unless the candidate leads, under this epoch, and is sure of it."""
        self._candidate.check()
        if self._candidate.epoch != self.epoch:
            raise NotLeader(f"epoch {self.epoch} has ended; call again, the leader answers")

    def _make_manager(self) -> LeaderEndpoint:
        parts, down_seconds = self._parts, self._conf.controller.agent_down_seconds
        splitting = SplitService(
            database=parts.database,
            ledger=self.ledger,
            view=self.reader.rack,
            predictor=lambda: StaticShare(self._conf.sizing.static_pool_percent),
            buffer_slices=parts.buffer_slices,
            down_seconds=down_seconds,
            claims=self._claims,
        )
        return LeaderEndpoint(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            splitting=splitting,
            buffer_slices=parts.buffer_slices,
            down_seconds=down_seconds,
            sanitize=self.sanitizing.wake,
            publish=self._publish,
            keep=parts.telemetry.write,
            gate=self.gate,
        )

    def _claims(self, view: RackView) -> PoolClaims:
        claims = None if self._parts.placement is None else read_claims(self._parts.placement, view, ())
        return {} if claims is None else claims.pools

    def _make_reconciler(self) -> Reconciler:
        return Reconciler(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            agents=self._agents(self._conf.controller.agent_timeout_seconds),
            placement=self._parts.placement,
            inventory=self._sync,
            receive=self.manager.receive,
            limits=self._limits,
            executor=self._executor,
            settled=self._settled,
            tell=self.announcer.expect,
        )

    def _agents(self, timeout: float) -> AgentAPI:
        return AgentAPI(self._parts.transport, timeout_seconds=timeout, monitor_seconds=max(1, int(timeout / 2)))

    def _limits(self) -> Limits:
        group = self._conf.controller
        return Limits(
            agent_down_seconds=group.agent_down_seconds,
            unclaimed_grace_seconds=group.unclaimed_grace_seconds,
            assign_timeout_seconds=group.assign_timeout_seconds,
            settle_seconds=group.report_settle_seconds,
            device_failed_seconds=group.device_failed_seconds,
        )

    def _publish(self) -> None:
        if self.publishing is not None:
            self.publishing.wake()

    def _settled(self) -> None:
        self.sanitizing.wake()
        self.settling.wake()
        self.announcing.wake()
        self._publish()

    def open(self) -> None:
        """Be promoted: fence devices and agents by the epoch, settle with what agents report, then answer requests.

        Raises NotLeader when the lead is lost meanwhile, Unavailable.
        """
        started = time.monotonic()
        self.devices.register()
        self._check()
        seconds = self._conf.ha.promotion_report_seconds
        agents = self._agents(seconds)

        def report_of(host: str) -> Report:
            return agents.report(host, epoch=self.epoch)

        self.reconciler.welcome(report_of, seconds)
        self._check()
        target = rpc.controller_target(self._conf.controller.name)
        endpoints = [self.manager, self.lending_manager]
        self._serve(oslo_messaging.get_rpc_server(self._parts.transport, target, endpoints, executor="threading"))
        LOG.info(
            "Epoch %d: serving %d pool(s), %.0f ms after the election",
            self.epoch,
            len(self.devices.uuids()),
            (time.monotonic() - started) * 1000,
        )
        self._start_background()

    def _serve(self, server: Any) -> None:
        server.start()
        self._keep(server)

    def _keep(self, server: Any) -> None:
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
        self.sanitizing.start()
        self.settling.start()
        self.announcing.start()
        if self.publishing is not None:
            self.publishing.start()
        periodic = self._make_periodic()
        with self._lock:
            if self._closing.is_set():
                return
            self._periodic = periodic
        threading.Thread(target=periodic.start, name="reconciler", daemon=True).start()
        if self._conf.nova.notifications:
            listener = start_listener(self._conf, self.reconciler.hint)
            if listener is not None:
                self._keep(listener)

    def _make_periodic(self) -> Any:
        group = self._conf.controller

        @periodics.periodic(spacing=group.reconcile_interval_seconds, run_immediately=True)
        def reconcile() -> None:
            if self._hears():
                self._guarded(self.reconciler.run)

        @periodics.periodic(spacing=group.resync_interval_seconds)
        def resync() -> None:
            if self._sync is not None:
                self._sync.forget()
                self._publish()

        @periodics.periodic(spacing=PRUNE_SECONDS, run_immediately=True)
        def prune() -> None:
            self._guarded(lambda: self.ledger.prune(group.operations_keep_seconds))
            self._guarded(self._parts.telemetry.tidy)

        return periodics.PeriodicWorker([(task, (), {}) for task in (reconcile, resync, prune)])

    def _guarded(self, task: Callable[[], Any]) -> None:
        if self._closing.is_set():
            return
        try:
            task()
        except NotLeader as error:
            LOG.info("A round ends with the epoch: %s", error)
            self._candidate.lost(self.epoch, error.message)
        except PondError as error:
            LOG.warning("A round is left out: %s", error)

    def close(self) -> None:
        """Take no request any more, let those under way end, end the threads; idempotent."""
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
        self.sanitizing.stop()
        self.settling.stop()
        self.announcing.stop(TELL_SECONDS)
        if self.publishing is not None:
            self.publishing.stop()
        self._executor.shutdown()
        LOG.info("Epoch %d: all parts have ended", self.epoch)
