"""A controller that leads: what one epoch's leader does, from its promotion until it is torn down.

Threads: oslo.messaging's for requests ([DEFAULT] executor_thread_pool_size), one reconciler, one that
tidies what was measured, one for Nova, and those of its parts (pondstack.controller.leader.parts).
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from futurist import periodics
from oslo_log import log

from pondstack.controller.gate import Gate
from pondstack.controller.leader.parts import LeaderParts
from pondstack.controller.resources import ControllerResources
from pondstack.domain.errors import NotLeader, PondError
from pondstack.domain.rack import RackView
from pondstack.ha.candidate import Candidate
from pondstack.rpc import targets
from pondstack.rpc.wire import Report
from pondstack.telemetry.notifications import start_listener

LOG = log.getLogger(__name__)

PRUNE_SECONDS = 600.0
QUIET_SECONDS = 2.0
"""So long after a take-over nothing looks after the rack yet: calls that waited for a leader go first."""
FIRST_EPOCH = 1
"""Nobody waits for its leader."""


class Leader:
    """Leads under one epoch. Made by one thread; open() and close() may meet."""

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
        self._conf = resources.conf
        self._resources = resources
        self._candidate = candidate
        self._receiving = receiving
        self.epoch = epoch
        self.gate = Gate(self._check)
        self._closing = threading.Event()
        self._parts = LeaderParts(
            resources, epoch, self.gate, renewed=candidate.renewed, closing=self._closing, warm_view=warm_view
        )
        self.reader, self.ledger = self._parts.reader, self._parts.ledger
        self.reconciler = self._parts.reconciler
        self.predictions, self.quality = self._parts.predictions, self._parts.quality
        self.mitigations = self._parts.mitigations
        self.sleeps, self.consolidation = self._parts.sleeps, self._parts.consolidation
        self._lock = threading.Lock()
        self._servers: list[Any] = []
        self._workers: list[periodics.PeriodicWorker] = []

    def _check(self) -> None:
        """Raise NotLeader unless the candidate leads, under this epoch, and is sure of it."""
        self._candidate.check()
        if self._candidate.epoch != self.epoch:
            raise NotLeader(f"epoch {self.epoch} has ended; call again, the leader answers")

    def open(self) -> None:
        """Take the lead: fence devices and agents by the epoch, reconcile with agents' reports, then answer requests.

        Raises NotLeader when the lead is lost meanwhile, Unavailable.
        """
        started = time.monotonic()
        self._parts.devices.register()
        self._check()
        seconds = self._conf.ha.promotion_report_seconds
        agents = self._parts.make_agents(seconds)

        def report_of(host: str) -> Report:
            return agents.report(host, epoch=self.epoch)

        self.reconciler.reconcile_at_promotion(report_of, seconds)
        self._check()
        target = targets.controller_target(self._conf.controller.name)
        server = self._resources.bus.server(target, self._parts.endpoints)
        server.start()
        self._add_server(server)
        LOG.info(
            "Epoch %d: serving %d pool(s), %.0f ms after the election",
            self.epoch,
            len(self._parts.devices.uuids()),
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
        with self._lock:
            if self._closing.is_set():
                return
            self._parts.start()
        quiet = 0.0 if self.epoch == FIRST_EPOCH else QUIET_SECONDS
        threading.Thread(target=self._watch, args=(quiet,), name="watch", daemon=True).start()
        if self._conf.nova.notifications:
            listener = start_listener(
                self._conf, self.reconciler.hint, self._resources.history.record, self._parts.consolidation.unplaced
            )
            if listener is not None:
                self._add_server(listener)

    def _watch(self, quiet_seconds: float) -> None:
        """Look after the rack from then on."""
        self._closing.wait(quiet_seconds)
        workers = {"reconciler": self._make_rounds()}
        if self._resources.measured:
            workers["tidying"] = self._make_tidying()
        with self._lock:
            if self._closing.is_set():
                return
            self._parts.start_watching()
            self._workers = list(workers.values())
            for name, worker in workers.items():
                threading.Thread(target=worker.start, name=name, daemon=True).start()

    def _make_rounds(self) -> periodics.PeriodicWorker:
        group = self._conf.controller

        @periodics.periodic(spacing=group.reconcile_interval_seconds, run_immediately=True)
        def reconcile() -> None:
            if self._receiving():
                self._guarded(self._parts.sizer.run)
                self._guarded(self.reconciler.run)

        @periodics.periodic(spacing=group.resync_interval_seconds)
        def resync() -> None:
            self._parts.resync()

        @periodics.periodic(spacing=PRUNE_SECONDS, run_immediately=True)
        def prune() -> None:
            ended = (self._conf.mitigation.keep_seconds, self._conf.consolidation.keep_seconds)
            keep_seconds = (group.operations_keep_seconds, *ended)
            self._guarded(lambda: self.ledger.prune(*keep_seconds))
            self._guarded(self._parts.planner.tidy)

        return periodics.PeriodicWorker([(task, (), {}) for task in (reconcile, resync, prune)])

    def _make_tidying(self) -> periodics.PeriodicWorker:
        """Of what was measured: it is rows by the million, so that no round waits for it."""

        @periodics.periodic(spacing=PRUNE_SECONDS, run_immediately=True)
        def tidy() -> None:
            for store in self._resources.measured:
                self._guarded(store.tidy)

        return periodics.PeriodicWorker([(tidy, (), {})])

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
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.wait()
        self._parts.stop()
        LOG.info("Epoch %d: all parts have ended", self.epoch)
