"""How hosts of a history sleep: the real transitions of a waker, over a host whose processes stand still meanwhile."""

import threading
from typing import TYPE_CHECKING, Any

import oslo_messaging

from pondstack.clients.bmc import Bmc
from pondstack.domain.power import FROZEN
from pondstack_agent.power.base import PowerDriver
from pondstack_agent.power.client import NOTHING
from pondstack_agent.power.service import WakerEndpoint
from pondstack_agent.power.transition import PowerTransitions

from ..kernel import Process

if TYPE_CHECKING:
    from pathlib import Path

    from ..host import SimHost
    from ..rack import Rack

LINGER_SECONDS = 0.3
TURN_SECONDS = 0.25
"""So often it is renewed that the processes of a sleeper stand still."""
RESET_SECONDS = 1.0


class SimPower(PowerDriver):
    """A host that sleeps: agent, nova-compute and the lender's process stand still, what is lent is served."""

    mode = FROZEN

    def __init__(self, host: "SimHost") -> None:
        self._host = host

    def refusal(self) -> str:
        """Sleep whenever told to."""
        return ""

    def enter(self, woken: threading.Event) -> None:
        """Sleep until woken; a waker that is killed leaves its host asleep."""
        host = self._host
        assert host.rack.plans
        host.rack.plans.falls_asleep(host)
        host.asleep = True
        self._stand_still()
        woken.wait()
        wake(host)

    def _stand_still(self) -> None:
        host, scheduler = self._host, self._host.rack.scheduler
        if host.asleep:
            assert host.rack.guests
            for process in (host.process, host.rack.guests.computes[host.name].process):
                if process is not None:
                    process.paused_until = max(process.paused_until, scheduler.now + TURN_SECONDS + 0.01)
            scheduler.call_at(scheduler.now + TURN_SECONDS, self._stand_still)


def wake(host: "SimHost") -> None:
    """Have a host's processes go on, and start those that were to start meanwhile."""
    if host.asleep:
        assert host.rack.guests
        host.asleep = False
        host.rack.scheduler.faults["host woke"] += 1
        host.start_agent()
        host.rack.guests.computes[host.name].start()


class SimWaker:
    """The one process of a host that can be called while it sleeps; its agent starts it."""

    def __init__(self, host: "SimHost") -> None:
        self._host = host
        self._process: Process | None = None
        self.transitions: PowerTransitions | None = None

    @property
    def runs(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.alive

    def start(self) -> PowerTransitions:
        """Start it, unless it runs."""
        if not self.runs or self.transitions is None:
            scheduler = self._host.rack.scheduler
            process = self._process = scheduler.process(topic(self._host.name))
            drivers = {FROZEN.name: SimPower(self._host)}
            self.transitions = PowerTransitions(
                drivers, LINGER_SECONDS, start=lambda work: scheduler.spawn(process, work)
            )
            endpoint = WakerEndpoint(self.transitions)
            self._host.rack.network.serve(process.name, process, lambda verb, _named: _answer(endpoint, verb))
        return self.transitions

    def kill(self) -> bool:
        """End it; returns whether it ran."""
        ran = self.runs
        if self._process is not None:
            self._host.rack.scheduler.kill(self._process)
        return ran


def _answer(endpoint: WakerEndpoint, verb: str) -> Any:
    try:
        return getattr(endpoint, verb)({})
    except oslo_messaging.ExpectedException as wrapped:
        raise wrapped.exc_info[1] from None


def topic(host: str) -> str:
    """Return where a host's waker is called."""
    return f"waker {host}"


class SimWakerClient:
    """pondstack_agent.power.client.WakerClient: an agent's way to the waker of its host, whose name is the folder's."""

    def __init__(self, rack: "Rack", folder: "Path") -> None:
        self._rack, self._host = rack, folder.name

    def enter(self, operation_id: str, driver: str) -> dict[str, Any]:
        """Have the host sleep soon."""
        self._rack.moments.pass_by("agent.suspend")
        answer = self._waker.start().enter(operation_id, driver)
        self._rack.moments.pass_by("agent.suspend")
        return answer

    def told(self) -> dict[str, Any]:
        """Return how far it is."""
        transitions = self._waker.transitions
        return transitions.told() if self._waker.runs and transitions is not None else dict(NOTHING)

    @property
    def _waker(self) -> SimWaker:
        assert self._rack.plans
        return self._rack.plans.wakers[self._host]


class WakerCalls:
    """oslo.messaging's client, as pondstack.rpc.waker_api calls it."""

    def __init__(self, rack: "Rack", host: str) -> None:
        self._rack, self._host, self._timeout = rack, host, 0.0

    def prepare(self, *, timeout: float, version: str) -> "WakerCalls":
        """Return a client that waits for so long."""
        del version
        self._timeout = timeout
        return self

    def call(self, _context: Any, verb: str) -> Any:
        """Call and wait for the answer."""
        self._rack.moments.pass_by("rpc")
        return self._rack.network.call(topic(self._host), verb, {}, self._timeout)


class SimBmc(Bmc):
    """A host's power: it can be switched on and cycled, not woken."""

    def __init__(self, rack: "Rack", host: str) -> None:
        self._rack, self._host = rack, host

    def wake(self) -> None:
        """Switch it on where it is off."""
        self._rack.moments.pass_by("rpc")
        self._rack.faults.revive(self._host)

    def reset(self) -> None:
        """Cycle its power."""
        self._rack.moments.pass_by("rpc")
        cycle(self._rack, self._host)


def cycle(rack: "Rack", name: str) -> None:
    """Cycle a host's power."""
    if rack.hosts[name].up:
        rack.scheduler.faults["host reset"] += 1
        rack.hosts[name].die()
    rack.scheduler.call_at(rack.scheduler.now + RESET_SECONDS, lambda: rack.faults.revive(name))
