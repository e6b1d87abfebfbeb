"""A compute host of a history: what outlives its agent, the real agent over it, and its guests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oslo_messaging

from pondstack.domain.errors import DeviceFailed, PondError
from pondstack_agent.build import build_agent
from pondstack_agent.drivers import HostPools
from pondstack_agent.endpoint import AgentEndpoint
from pondstack_agent.host_slices import HostSlicesEndpoint
from tests.fixtures.memory_host import MemoryHost

from . import settings
from .api import SimControllerAPI
from .fault_links import DiskRecords
from .heirs.caches import CachingHostPool
from .kernel import Process
from .lending.lender import Life
from .lending.tenant import Tenant
from .lending.world import NoFolder
from .slow_host import SlowHostPool
from .threads import RLock, SimExecutor

if TYPE_CHECKING:
    from .rack import Rack


def serving(endpoints: Sequence[Any], method: str) -> Any:
    """Return the endpoint that has a method, as oslo.messaging does."""
    return next((item for item in endpoints if hasattr(item, method)), endpoints[0])


class SimHost:
    """One host. `up` False: it has no power, its guests are gone; `agent_up` False: only its agent is.

    `asleep`: its processes stand still, and what it lends is served. `power_cuts`: how often all that ran here ended.
    """

    def __init__(self, rack: "Rack", name: str) -> None:
        self.rack = rack
        self.name = name
        self.memory = MemoryHost(name, rack.devices.values())
        self.up = True
        self.asleep = False
        self.power_cuts = 0
        self.wall_skew_seconds = 0.0
        self.process: Process | None = None
        self.life: Life | None = None
        self.tenant = Tenant(self)

    @property
    def agent_up(self) -> bool:
        """Whether the agent runs."""
        return self.process is not None and self.process.alive

    def wall_seconds(self) -> float:
        """Return what its clock shows."""
        return 1e6 + self.rack.scheduler.now + self.wall_skew_seconds

    def start_agent(self) -> None:
        """Start the agent over what is on the disk."""
        if self.agent_up or not self.up or self.asleep:
            return
        scheduler = self.rack.scheduler
        process = self.process = scheduler.process(self.name)
        self.memory.lock = RLock(scheduler)  # type: ignore[assignment]
        scheduler.spawn(process, self._run, process)

    def _run(self, process: Process) -> None:
        scheduler, lent = self.rack.scheduler, self.rack.lent
        conf = settings.agent_conf(self.name)
        more: dict[str, Any] = {}
        if lent is not None:
            conf.lending = lent.conf()
            more = {"meminfo": lambda: lent.memory_of(self), "growth_mib": lambda: 0}
            more |= {"pages": self.tenant, "links": self.tenant.data_plane}
        try:
            driver = self._driver()
            agent = build_agent(
                conf,  # type: ignore[arg-type]
                SimControllerAPI(
                    self.rack.network, self.rack.moments, scheduler, settings.CONTROLLER_CALL_SECONDS, process.rng
                ),
                SimExecutor(scheduler, process),
                pools=HostPools([driver]),
                clock=self.wall_seconds,
                records=self._records,  # type: ignore[arg-type]
                boot=f"{self.name} {self.power_cuts}",
                **more,
            )
            agent.housekeeper.recover()
        except DeviceFailed as error:
            scheduler.note(f"cannot start: {error}")
            scheduler.call_at(scheduler.now + 1.0, self._again(process))
            return
        endpoints: list[Any] = [agent.endpoint]
        endpoints += [item for item in agent.endpoints if isinstance(item, HostSlicesEndpoint)]
        if lent is not None:
            endpoints += lent.serve(self, agent)
        self.rack.network.serve(
            self.name, process, lambda method, named: self._handle(serving(endpoints, method), method, named)
        )
        while True:
            try:
                agent.reporter.heartbeat()
                agent.housekeeper.tidy(settings.UNANSWERED_SECONDS, settings.KEEP_SECONDS)
                if lent is not None:
                    lent.beat(self, agent, self._client(process))
            except PondError as error:
                scheduler.note(f"heartbeat failed: {error}")
            scheduler.sleep(settings.HEARTBEAT_SECONDS)

    def _driver(self) -> SlowHostPool:
        kind = CachingHostPool if self.rack.history.caches else SlowHostPool
        return kind(self, self._records(Path("attachments")))  # type: ignore[arg-type]

    def _client(self, process: Process) -> SimControllerAPI:
        rack, seconds = self.rack, settings.CONTROLLER_CALL_SECONDS
        return SimControllerAPI(rack.network, rack.moments, rack.scheduler, seconds, process.rng)

    def _again(self, process: Process) -> Any:
        def again() -> None:
            self.rack.scheduler.kill(process)
            self.start_agent()

        return again

    def _records(self, folder: Path) -> DiskRecords:
        changed = self._attachments_changed if folder.name == "attachments" else (lambda: None)
        records = DiskRecords(self.memory.folder(folder.name), self.rack.moments, changed)
        records.folder = NoFolder(folder.name)
        return records

    def _attachments_changed(self) -> None:
        self.rack.watch.disk_changed(self.name)
        if self.rack.holding is not None:
            self.rack.holding.disk_changed(self.name)

    def _handle(self, endpoint: Any, method: str, arguments: Mapping[str, Any]) -> Any:
        self.rack.moments.pass_by(f"agent.{method}")
        me = f"the agent of {self.name}"
        before = self.rack.watch.obeyed(me)
        try:
            answer = getattr(endpoint, method)({}, **arguments)
        except oslo_messaging.ExpectedException as wrapped:
            raise wrapped.exc_info[1] from None
        # Of lent memory a command may take long after its epoch was let in; generations keep it from harm.
        if "epoch" in arguments and isinstance(endpoint, AgentEndpoint):
            self.rack.watch.accepted(me, arguments["epoch"], before)
        return answer

    def die(self) -> None:
        """Lose power: agent and guests are gone, the disk stays."""
        self.up = self.asleep = False
        self.power_cuts += 1
        self.rack.caches.cut(self.name)
        if self.rack.plans is not None:
            self.rack.plans.wakers[self.name].kill()
        if self.process is not None:
            self.rack.scheduler.kill(self.process)
        # Not by stop_guest(): a power cut waits for nobody's lock.
        guests, self.memory.mapped = list(self.memory.mapped), {}
        for guest in guests:
            self.rack.watch.stopped(self.name, guest.partition("@")[0])
        if self.rack.lent is not None:
            self.life = None
            self.tenant.died()

    def revive(self) -> None:
        """Get power again."""
        if not self.up:
            self.up = True
            self.start_agent()
            if self.rack.plans is not None and self.rack.guests is not None:
                self.rack.guests.computes[self.name].start()  # it did not while its host slept
