"""pondstack-agent as a service: RPC server and heartbeat, both started in the process that oslo.service gives it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import futurist
from futurist import periodics
from oslo_config import cfg
from oslo_log import log
from oslo_service import service

from pondstack.devices.private_folder import private_folder
from pondstack.domain.errors import PondError
from pondstack.rpc import targets
from pondstack.rpc import transport as rpc
from pondstack.rpc.bounded import BoundedCalls
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.identity import Identity, Role
from pondstack_agent.build import Agent, build_agent
from pondstack_agent.controller_link import controller_link
from pondstack_agent.separation import Separation
from pondstack_agent.telemetry.service import Telemetry

LOG = log.getLogger(__name__)

_BACKGROUND_THREADS = 2
_REMOTE_THREADS = 4
"""Of these one may wait long for pages to leave a lender, and one for the controller."""
_MITIGATIONS = 2
"""At once, moving back misplaced pages included; more wait. Two fill the memory bus of a host."""


class AgentService(service.ServiceBase):  # type: ignore[misc]
    """One host's agent. Threads: [agent] rpc_threads for requests, two for the heartbeat, two that tell of releases,
    four for lent memory, four for telemetry, one for each privileged process, and those in which calls of the
    controller wait.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ready: Callable[[], None] = lambda: None,
        border: Border | None = None,
        separation: Separation | None = None,
    ) -> None:
        """`ready` is called once it serves. `border`: of the bus, None where the service is to read its credential.

        `separation`: the processes that have what this one lacks, None where it lacks nothing.
        """
        self._conf = conf
        self._ready = ready
        self._border = border
        self._separation = separation
        self._done: threading.Event | None = None
        self._server: Any = None
        self._heartbeat: Any = None
        self._telemetry: Telemetry | None = None
        self._executor: Any = None
        self._mitigating: Any = None
        self._remote: Any = None
        self._agent: Agent | None = None

    def start(self) -> None:
        """Recover, then serve. Nothing is made before: oslo.service may have forked."""
        conf = self._conf
        if self._separation is not None:
            self._separation.connect()
        private_folder(Path(conf.agent.state_dir))
        self._done = threading.Event()
        bus = _bus(conf, self._border)
        self._executor = futurist.ThreadPoolExecutor(max_workers=_BACKGROUND_THREADS)
        self._mitigating = futurist.ThreadPoolExecutor(max_workers=_MITIGATIONS)
        self._remote = futurist.ThreadPoolExecutor(max_workers=_REMOTE_THREADS)
        controller = ControllerAPI(bus, timeout_seconds=conf.agent.controller_timeout_seconds)
        # As many as can be waiting at once: a call that the bus holds up must not keep others waiting.
        calls = BoundedCalls(conf.agent.rpc_threads + _BACKGROUND_THREADS + _REMOTE_THREADS + 2, "controller-call")
        agent = build_agent(
            conf,
            controller,
            self._executor,
            calls=calls,
            mitigating=self._mitigating,
            remote=self._remote,
            revocations=None if bus.border is None else bus.border.revocations,
        )
        agent.housekeeper.recover()
        if agent.borrower is not None:
            agent.borrower.recover()
        if agent.remote is not None:
            agent.remote.recover()
        agent.tiering.start()
        self._agent = agent
        self._server = bus.server(targets.agent_target(conf.host), agent.endpoints)
        self._server.start(override_pool_size=conf.agent.rpc_threads)
        self._heartbeat = _heartbeat(conf, agent)
        thread = threading.Thread(target=self._heartbeat.start, name="heartbeat", daemon=True)
        thread.start()
        if conf.telemetry.enabled:
            link = controller_link(controller, calls, conf.agent.controller_timeout_seconds)
            self._telemetry = Telemetry(conf, link, agent.played, agent.served, agent.views)
            self._telemetry.start()
        LOG.info("Agent of host %s serves", conf.host)
        self._ready()

    def stop(self, graceful: bool = True) -> None:
        """Take no new request, finish those under way, tell of the last releases, restore the kernel's settings."""
        if self._server is not None:
            self._server.stop()
            if graceful:
                self._server.wait()
        if self._heartbeat is not None:
            self._heartbeat.stop()  # not waited for: what it does is on disk before and goes on after a restart
        if self._agent is not None:
            self._agent.housekeeper.stop()
            if self._agent.lending is not None:
                self._agent.lending.stop()
        if self._telemetry is not None:
            self._telemetry.stop()
        if self._executor is not None:
            self._executor.shutdown(wait=graceful)
        if self._mitigating is not None:
            self._mitigating.shutdown(wait=graceful)
        if self._remote is not None:
            self._remote.shutdown(wait=graceful)
        if self._agent is not None:
            self._agent.tiering.stop()
        if self._done is not None:
            self._done.set()

    def wait(self) -> None:
        """Wait until it was stopped."""
        if self._done is not None:
            self._done.wait()

    def reset(self) -> None:
        """SIGHUP: oslo.service has reloaded the configuration; nothing else keeps a copy."""


def _bus(conf: cfg.ConfigOpts, border: Border | None) -> rpc.Bus:
    if border is None:
        return rpc.get_transport(conf, Identity(Role.AGENT, conf.host))
    return rpc.Bus(rpc.get_oslo_transport(conf), border)


def _heartbeat(conf: cfg.ConfigOpts, agent: Agent) -> Any:
    @periodics.periodic(spacing=conf.agent.heartbeat_seconds, run_immediately=True)
    def beat() -> None:
        try:
            agent.reporter.heartbeat()
            agent.housekeeper.tidy(conf.agent.unanswered_attach_seconds, conf.agent.operation_memory_seconds)
            agent.tiering.maintain()
            for side in (agent.lending, agent.borrower):
                if side is not None:
                    side.maintain(conf.agent.operation_memory_seconds)
            if agent.remote is not None:
                agent.remote.maintain(conf.agent.unanswered_attach_seconds)
        except (PondError, OSError) as error:
            LOG.error("Heartbeat of host %s failed: %s", conf.host, error)

    # In a thread of its own: the worker holds a lock while it runs something itself, and stop() would wait for that.
    return periodics.PeriodicWorker([(beat, (), {})], executor_factory=lambda: futurist.ThreadPoolExecutor(1))
