"""pondstack-controller as a service: takes the epoch, registers its devices, then answers.

Threads: oslo.messaging's for requests ([DEFAULT] executor_thread_pool_size), one reconciler, one sanitiser, one writer
of Placement, [controller] agent_calls for commands to agents, one for Nova's notifications.
"""

import os
import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import futurist
import oslo_messaging
from futurist import periodics
from oslo_config import cfg
from oslo_log import log
from oslo_service import service

from pondstack.clients.placement import Placement
from pondstack.conf import controller as controller_conf
from pondstack.conf import database as database_conf
from pondstack.conf import nova as nova_conf
from pondstack.conf import placement as placement_conf
from pondstack.conf import sizing as sizing_conf
from pondstack.controller.background import Background
from pondstack.controller.claims import read_claims
from pondstack.controller.devices import DeviceRegistry, parse_spec
from pondstack.controller.inventory import InventorySync
from pondstack.controller.manager import ControllerManager
from pondstack.controller.reconciler import Reconciler
from pondstack.controller.room import PoolClaims
from pondstack.controller.sanitizer import Sanitizer
from pondstack.controller.splitting import Splitting
from pondstack.controller.world import Limits
from pondstack.db.engine import Database
from pondstack.db.leadership import SqlLeadership
from pondstack.db.ledger import Ledger
from pondstack.db.rack_view import RackView
from pondstack.db.sql_reader import SqlReader
from pondstack.domain.errors import NotLeader, PondError
from pondstack.domain.sizing import StaticShare
from pondstack.ha.lease import take_epoch
from pondstack.rpc import transport as rpc
from pondstack.rpc.agent_api import AgentAPI
from pondstack.telemetry.notifications import start_listener

LOG = log.getLogger(__name__)

PRUNE_SECONDS = 600.0


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of the controller."""
    for module in (controller_conf, database_conf, nova_conf, placement_conf, sizing_conf):
        module.register_opts(conf)


class Controller:
    """All parts of one controller, made and joined. `deposed` is called once when somebody else took the lead."""

    def __init__(self, conf: cfg.ConfigOpts, deposed: Callable[[], None]) -> None:
        self._conf = conf
        self._deposed = deposed
        group = conf.controller
        self.database = Database.from_conf(conf)
        self.reader = SqlReader(self.database, group.agent_down_seconds)
        holder = f"{group.name}:{os.getpid()}:{uuid4().hex[:8]}"
        epoch = take_epoch(SqlLeadership(self.database), holder)
        LOG.info("Leading with epoch %d as %s", epoch, holder)
        self.ledger = Ledger(self.database, epoch, group.agent_down_seconds)
        self.devices = DeviceRegistry(self.ledger, [parse_spec(text) for text in group.pool_devices])
        self.placement = Placement.from_conf(conf) if conf.placement.enabled else None
        self._transport = rpc.get_transport(conf)
        self._executor = futurist.ThreadPoolExecutor(max_workers=group.agent_calls)
        sanitizer = Sanitizer(
            self.ledger, self.reader, self.devices, lambda _uuid: self._publish(), lambda: self.sanitizing.stopping
        )
        self.sanitizing = Background("sanitizer", sanitizer.drain)
        self.publishing: Background | None = None
        self._sync: InventorySync | None = None
        if self.placement is not None:
            sync = self._sync = InventorySync(self.placement, self.ledger, self._buffer_slices)
            self.publishing = Background("inventory", lambda: sync.write(self.reader.rack()))
        self.manager = self._make_manager()
        self.reconciler = self._make_reconciler()
        self.manager.reconciler = self.reconciler
        self._server: Any = None
        self._listener: Any = None
        self._periodic: Any = None

    def _make_manager(self) -> ControllerManager:
        down_seconds = self._conf.controller.agent_down_seconds
        splitting = Splitting(
            database=self.database,
            ledger=self.ledger,
            view=self.reader.rack,
            predictor=lambda: StaticShare(self._conf.sizing.static_pool_percent),
            buffer_slices=self._buffer_slices,
            down_seconds=down_seconds,
            claims=self._claims,
        )
        return ControllerManager(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            splitting=splitting,
            buffer_slices=self._buffer_slices,
            down_seconds=down_seconds,
            sanitize=self.sanitizing.wake,
            publish=self._publish,
        )

    def _claims(self, view: RackView) -> PoolClaims:
        claims = None if self.placement is None else read_claims(self.placement, view, ())
        return {} if claims is None else claims.pools

    def _make_reconciler(self) -> Reconciler:
        timeout = self._conf.controller.agent_timeout_seconds
        return Reconciler(
            ledger=self.ledger,
            reader=self.reader,
            devices=self.devices,
            agents=AgentAPI(self._transport, timeout_seconds=timeout, monitor_seconds=max(1, int(timeout / 2))),
            placement=self.placement,
            inventory=self._sync,
            receive=self.manager.receive,
            limits=self._limits,
            executor=self._executor,
            settled=self._settled,
        )

    def _buffer_slices(self) -> int:
        return int(self._conf.controller.free_buffer_slices)

    def _limits(self) -> Limits:
        group = self._conf.controller
        return Limits(
            agent_down_seconds=group.agent_down_seconds,
            unclaimed_grace_seconds=group.unclaimed_grace_seconds,
            assign_timeout_seconds=group.assign_timeout_seconds,
            settle_seconds=group.report_settle_seconds,
        )

    def _publish(self) -> None:
        if self.publishing is not None:
            self.publishing.wake()

    def _settled(self) -> None:
        self.sanitizing.wake()
        self._publish()

    def start(self) -> None:
        """Register the devices, then serve. Agents that were waiting get their answers now."""
        self.devices.register()
        self.sanitizing.start()
        if self.publishing is not None:
            self.publishing.start()
        target = rpc.controller_target(self._conf.controller.name)
        self._server = oslo_messaging.get_rpc_server(self._transport, target, [self.manager], executor="threading")
        self._server.start()
        if self._conf.nova.notifications:
            self._listener = start_listener(self._conf, self.reconciler.hint)
        self._periodic = self._make_periodic()
        threading.Thread(target=self._periodic.start, name="reconciler", daemon=True).start()
        LOG.info("Serving %d pool(s)", len(self.devices.uuids()))

    def _make_periodic(self) -> Any:
        group = self._conf.controller

        @periodics.periodic(spacing=group.reconcile_interval_seconds, run_immediately=True)
        def reconcile() -> None:
            self._guarded(self.reconciler.run)

        @periodics.periodic(spacing=group.resync_interval_seconds)
        def resync() -> None:
            if self._sync is not None:
                self._sync.forget()
                self._publish()

        @periodics.periodic(spacing=PRUNE_SECONDS, run_immediately=True)
        def prune() -> None:
            self._guarded(lambda: self.ledger.prune(group.operations_keep_seconds))

        return periodics.PeriodicWorker([(task, (), {}) for task in (reconcile, resync, prune)])

    def _guarded(self, task: Callable[[], Any]) -> None:
        try:
            task()
        except NotLeader as error:
            LOG.error("%s", error)
            self._deposed()
        except PondError as error:
            LOG.warning("A round is left out: %s", error)

    def stop(self) -> None:
        """Take no new request, finish those under way, then end the threads."""
        servers = [server for server in (self._server, self._listener) if server is not None]
        for server in servers:
            server.stop()
        for server in servers:
            server.wait()
        if self._periodic is not None:
            self._periodic.stop()
            self._periodic.wait()
        self.sanitizing.stop()
        if self.publishing is not None:
            self.publishing.stop()
        self._executor.shutdown()
        self._transport.cleanup()
        self.database.dispose()


class ControllerService(service.ServiceBase):
    """The controller under oslo.service. Nothing is made before start(): oslo.service may have forked."""

    def __init__(self, conf: cfg.ConfigOpts, deposed: Callable[[], None]) -> None:
        self._conf = conf
        self._deposed = deposed
        self._controller: Controller | None = None
        self._done: threading.Event | None = None

    def start(self) -> None:
        """Take the lead and serve."""
        self._done = threading.Event()
        self._controller = Controller(self._conf, self._deposed)
        self._controller.start()

    def stop(self, graceful: bool = True) -> None:
        """Drain and end."""
        del graceful
        if self._controller is not None:
            self._controller.stop()
        if self._done is not None:
            self._done.set()

    def wait(self) -> None:
        """Wait until it was stopped."""
        if self._done is not None:
            self._done.wait()

    def reset(self) -> None:
        """SIGHUP: oslo.service has taken the mutable options over; everything reads them afresh."""
