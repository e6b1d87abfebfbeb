"""Deaths at the steps of one plan: who carries a step out dies before it, or before it is known to be done.

A step: a call that an agent answers, or a change at Nova. Of repeated calls the first two and the last one are steps;
those for reports come all the time, and are none.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kernel import ProcessDied
from ..network import Message, Network, Server
from ..plan import History, Step
from ..run import Outcome, run
from .nova import Cloud
from .plan import BOOT, PLAN, POOLS, ROOMS
from .world import PlansWorld

if TYPE_CHECKING:
    from ..rack import Rack

Kill = Callable[[Any, str], None]

HOSTS = ("h1", "h2")
SEED = 9
"""With it the two servers are on two hosts, so that the plan moves one."""
READS = frozenset({"get_lent"})
CHANGES = ("disable", "enable", "live_migrate")
AGENT_SECONDS = 1.0
COMPUTE_SECONDS = 6.0
"""For so long the victim is down."""


class Point(NamedTuple):
    """One step: on which host, of which call, and the how many-th of these."""

    host: str
    call: str
    number: int


def history() -> History:
    """Return one in which a plan empties a host, which lends and sleeps afterwards; nothing else goes wrong."""
    servers = [Step(3.0, BOOT, "", {"mib": 2, "cpus": 0.5}), Step(3.2, BOOT, "", {"mib": 1, "cpus": 0.5})]
    plan = Step(6.0, PLAN, "", {"afterwards": "suspend", "seconds": 0.2, "applied": True})
    rooms = dict.fromkeys(HOSTS, ROOMS)
    return History(
        SEED,
        ("c1", "c2"),
        HOSTS,
        POOLS,
        0,
        True,
        (*servers, plan),
        (),
        lending=True,
        guests=True,
        plans=True,
        rooms=rooms,
    )


def nobody(_rack: "Rack", _host: str) -> None:
    """Have all live."""


class Deaths:
    """Counts the steps of a run. At `point` whoever `kill` ends dies, `before` the step or after it."""

    def __init__(self, point: Point | None = None, *, before: bool = True, kill: Kill = nobody) -> None:
        self._point, self._before, self._kill = point, before, kill
        self.counts: Counter[tuple[str, str]] = Counter()
        self.died = False
        self._rack: Any = None

    @property
    def points(self) -> list[Point]:
        """The steps that there were."""
        return [
            Point(host, call, number)
            for (host, call), count in sorted(self.counts.items())
            for number in sorted({1, min(2, count), count})
        ]

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """Have runs meet it."""
        serve, start = Network._serve, PlansWorld.start
        changes = {name: getattr(Cloud, name) for name in CHANGES}
        deaths = self

        def started(world: PlansWorld) -> None:
            deaths._rack = world.rack
            start(world)

        def watched_serve(network: Network, server: Server, message: Message) -> None:
            host, method = message.topic, message.method
            if host not in HOSTS or method in READS or not deaths._reached(host, method):
                serve(network, server, message)
            elif deaths._before:
                deaths._end(host)
                if server.process.alive:  # it is not the agent that died
                    serve(network, server, message)
            else:
                serve(network, Server(server.process, lambda *asked: deaths._handled(server, host, *asked)), message)

        def watched(name: str) -> Callable[..., None]:
            def change(cloud: Cloud, subject: Any, *others: Any) -> None:
                host = cloud.servers[subject].host if name == "live_migrate" else subject.hypervisor
                here = deaths._reached(host, name)
                if here and deaths._before:
                    deaths._end(host)
                changes[name](cloud, subject, *others)
                if here and not deaths._before:
                    deaths._end(host)

            return change

        Network._serve, PlansWorld.start = watched_serve, started  # type: ignore[method-assign]
        for name in CHANGES:
            setattr(Cloud, name, watched(name))
        try:
            yield
        finally:
            Network._serve, PlansWorld.start = serve, start  # type: ignore[method-assign]
            for name, change in changes.items():
                setattr(Cloud, name, change)

    def _reached(self, host: str, call: str) -> bool:
        self.counts[host, call] += 1
        return self._point == (host, call, self.counts[host, call])

    def _handled(self, server: Server, host: str, *asked: Any) -> Any:
        """Have a call be carried out, and its answer be lost with who dies."""
        answer = server.handle(*asked)
        self._end(host)
        if not server.process.alive:
            raise ProcessDied
        return answer

    def _end(self, host: str) -> None:
        self.died = True
        self._kill(self._rack, host)


def kill_agent(rack: "Rack", host: str) -> None:
    """Have the agent of a host be killed, and be started again in a while."""
    mine = rack.hosts[host]
    if mine.process is not None:
        rack.scheduler.kill(mine.process)
        rack.scheduler.call_at(rack.scheduler.now + AGENT_SECONDS, mine.start_agent)


def kill_compute(rack: "Rack", host: str) -> None:
    """Have nova-compute of a host be down for a while."""
    assert rack.guests
    rack.guests.computes[host].restart(COMPUTE_SECONDS)


def run_with(deaths: Deaths) -> Outcome:
    """Run the history, and have somebody die in it."""
    return run(history(), broken=deaths.planted)
