"""What a history is: a rack, operations and faults, all drawn from one seed before anything runs.

Each operation and each fault stands for itself, so that a failing history can be made shorter by leaving some out.
Times are in virtual seconds.
"""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

SECONDS = 30.0
"""Operations and faults begin within so many seconds; then the faults stop and all has to become consistent."""

SLICE_MIB = 1024

MOMENTS = ("db.before", "db.after", "device.before", "device.after", "zeroing.before", "rpc", "any")
"""Where a controller can be stopped: around a commit, around a change of a device, before a call."""

DISK_MOMENTS = ("disk.before", "disk.after", "rpc", "agent.attach", "agent.detach", "agent.offline", "any")
"""Where an agent can be stopped: around a write, before a call, before it does what it was asked for."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation or fault. `target`: a VM, a host, a process, a pool; `values` depend on the kind."""

    at: float
    kind: str
    target: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        values = " ".join(f"{key}={value}" for key, value in self.values.items())
        return f"{self.at:7.3f} {self.kind} {self.target} {values}".rstrip()


@dataclass(frozen=True, slots=True)
class History:
    """One history. `drain`: at the end all guests are deleted and every slice has to come back.

    `lending`: hosts lend each other memory (see the folder lending), and no guest uses a pool.
    `holding`: hosts hold slices for themselves (see the folder holding). `claims`: guaranteed loans need a claim in
    Placement. `removal`: an operator removes hosts and pools (see the folder removal). `guests`: Nova places guests on
    the hosts that lend (see the folder guests). `sized`: the leader sizes the free buffers, from `buffer_slices` up;
    else they are `buffer_slices`. `rooms`: how many buffers each host can lend in all, where the active ones are asked
    to; None: any number, and nobody is asked. `plans`: hosts sleep and are emptied by plans (see the folder plans).
    `hands_over`: guests that move live take their slices along. `caches`: hosts do not see each other's CPU caches.
    `offers`: the leader tells Placement of lent memory, and while hosts take it back at the end, at so many seconds
    after they began, all of this happens; None: it tells nothing.
    """

    seed: int
    controllers: tuple[str, ...]
    hosts: tuple[str, ...]
    pools: dict[str, int]
    buffer_slices: int
    drain: bool
    operations: tuple[Step, ...]
    faults: tuple[Step, ...]
    lending: bool = False
    removal: bool = False
    guests: bool = False
    sized: bool = False
    claims: bool = False
    holding: bool = False
    rooms: dict[str, int] | None = None
    plans: bool = False
    hands_over: bool = False
    caches: bool = False
    offers: tuple[Step, ...] | None = None


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others.

    A kind may name the moment for which it waits, as in `pause@device.before`.
    """
    rng = Random(f"history {seed}")
    controllers = tuple(f"c{number}" for number in range(1, rng.choice((3, 3, 4))))
    hosts = tuple(f"h{number}" for number in range(1, rng.choice((3, 3, 4))))
    pools = {f"pool{number}": rng.randint(3, 6) for number in range(rng.choice((1, 1, 2)))}
    operations = tuple(_operations(rng, controllers, hosts, tuple(pools), 2 if only else 1))
    faults = tuple(_faults(rng, controllers, hosts, pools, only))
    if not only:
        faults = _with_slow_host(seed, hosts, faults)
    sized = not only and Random(f"sized {seed}").random() < SIZED_SHARE
    buffer_slices, drain = rng.choice((0, 1)), rng.random() < 0.3
    more = {"sized": sized, "hands_over": Random(f"hands over {seed}").random() < HANDED_SHARE}
    return History(seed, controllers, hosts, pools, buffer_slices, drain, operations, faults, **more)


def _operations(
    rng: Random, controllers: tuple[str, ...], hosts: tuple[str, ...], pools: tuple[str, ...], density: int
) -> list[Step]:
    steps = []
    vms = [f"vm{number}" for number in range(1, density * rng.randint(4, 10))]
    for vm in vms:
        values = {"host": rng.choice(hosts), "pool": rng.choice(pools), "slices": rng.choice((1, 1, 1, 2, 2, 3))}
        steps.append(Step(rng.uniform(0.5, SECONDS * 0.6), "boot", vm, values))
    for _ in range(density * rng.randint(4, 14)):
        at, vm = rng.uniform(2.0, SECONDS), rng.choice(vms)
        kind = rng.choice(("delete", "delete", "delete", "migrate", "migrate", "reboot", "evacuate", "boot"))
        values: dict[str, Any] = {}
        if kind == "migrate":
            values = {"host": rng.choice(hosts), "seconds": rng.uniform(0.1, 4.0)}
        elif kind == "evacuate":
            values = {"host": rng.choice(hosts)}
        elif kind == "boot":
            values = {"host": rng.choice(hosts), "pool": rng.choice(pools), "slices": rng.choice((1, 2))}
        elif kind == "reboot":
            values = {"seconds": rng.uniform(0.1, 6.0)}
        steps.append(Step(at, kind, vm, values))
    if rng.random() < 0.3:
        steps.append(Step(rng.uniform(2.0, SECONDS), "failover", rng.choice(("", *controllers))))
    if rng.random() < 0.15:
        steps.append(Step(rng.uniform(2.0, SECONDS), "audit"))
    if rng.random() < 0.15:
        steps.append(Step(rng.uniform(2.0, SECONDS), "restart", "leader", {"seconds": rng.uniform(0.1, 4.0)}))
    return sorted(steps, key=lambda step: step.at)


def _with_slow_host(seed: int, hosts: tuple[str, ...], faults: tuple[Step, ...]) -> tuple[Step, ...]:
    rng = Random(f"slow host {seed}")
    if rng.random() >= SLOW_SHARE:
        return faults
    return tuple(sorted((*faults, slow_host(rng, rng.uniform(0.5, SECONDS), hosts)), key=lambda step: step.at))


def slow_host(rng: Random, at: float, hosts: tuple[str, ...]) -> Step:
    """Return a fault: a host's kernel needs so many seconds to take memory offline, until the faults stop."""
    return Step(at, SLOW_HOST, rng.choice(hosts), {"seconds": rng.choice((0.3, 1.5, 4.0, 9.0))})


def _faults(
    rng: Random, controllers: tuple[str, ...], hosts: tuple[str, ...], pools: dict[str, int], only: tuple[str, ...]
) -> list[Step]:
    steps = []
    for _ in range(12 if only else rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10))):
        at = rng.uniform(0.5, SECONDS)
        kind = rng.choice(only) if only else rng.choices(tuple(KINDS), tuple(KINDS.values()))[0]
        kind, _, moment = kind.partition("@")
        step = fault(rng, at, kind, controllers, hosts, pools)
        steps.append(replace(step, values={**step.values, "moment": moment}) if moment else step)
    return sorted(steps, key=lambda step: step.at)


KINDS = {
    "lose": 3,
    "delay": 3,
    "duplicate": 3,
    "cut": 4,
    "crash": 5,
    "pause": 6,
    "lose_commit": 2,
    "crash_agent": 4,
    "pause_agent": 2,
    "host_death": 2,
    "clock_jump": 1,
    "agent_clock_jump": 1,
    "device_failure": 1,
    "slice_stuck": 1,
    "placement_down": 1,
    "database_down": 1,
    "cut_broker": 3,
}
"""Kinds of faults and how often they are drawn."""

SLOW_HOST = "slow_host"
"""A kind of its own stream: the other faults of a seed are what they would be without it."""
SLOW_SHARE = 0.4

FORGED_RELEASE = "forged_release"
"""A kind of histories that are drawn with it only: what somebody on the bus makes up, no fault of the rack's own."""

HANDED_SHARE = 0.5
"""In how many histories slices are handed over; of a stream of its own, too."""
SIZED_SHARE = 0.5
"""How many histories have free buffers that are sized; of a stream of its own, too."""


def fault(
    rng: Random, at: float, kind: str, controllers: tuple[str, ...], hosts: tuple[str, ...], pools: dict[str, int]
) -> Step:
    """Return a fault of a kind, drawn from `rng`."""
    anybody = (*controllers, *hosts)
    if kind in ("lose", "delay", "duplicate"):
        values = {"seconds": rng.uniform(1.0, 8.0), "share": rng.choice((0.2, 0.5, 0.9))}
        return Step(at, kind, rng.choice(("", *anybody)), values)
    if kind == "cut":
        return Step(at, kind, rng.choice(anybody), {"seconds": rng.choice((0.5, 2.0, 5.0, 9.0, 14.0))})
    if kind == "cut_broker":
        seconds = rng.choice((2.0, 9.0, 20.0, 30.0))
        return Step(at, kind, rng.choice((*controllers, "leader", "leader", "leader")), {"seconds": seconds})
    if kind == "crash":
        values = {"moment": rng.choice(MOMENTS), "seconds": rng.uniform(0.2, 6.0)}
        return Step(at, kind, rng.choice((*controllers, "leader", "leader")), values)
    if kind == "pause":
        values = {"moment": rng.choice(MOMENTS), "seconds": rng.choice((0.5, 2.0, 3.0, 5.0, 9.0))}
        return Step(at, kind, rng.choice((*controllers, "leader", "leader", "leader")), values)
    if kind == "lose_commit":
        return Step(at, kind, "leader", {"moment": "db.after"})
    if kind == "crash_agent":
        values = {"moment": rng.choice(DISK_MOMENTS), "seconds": rng.uniform(0.1, 5.0)}
        return Step(at, kind, rng.choice(hosts), values)
    if kind == "pause_agent":
        values = {"moment": rng.choice(DISK_MOMENTS), "seconds": rng.uniform(0.5, 8.0)}
        return Step(at, kind, rng.choice(hosts), values)
    if kind == "host_death":
        return Step(at, kind, rng.choice(hosts), {"seconds": rng.choice((1.0, 5.0, 10.0, 16.0))})
    if kind == SLOW_HOST:
        return slow_host(rng, at, hosts)
    if kind == FORGED_RELEASE:
        return Step(at, kind, rng.choice(hosts))
    if kind == "clock_jump":
        return Step(at, kind, "database", {"seconds": rng.choice((-40.0, -3.0, -0.5, 0.5, 3.0, 40.0))})
    if kind == "agent_clock_jump":
        return Step(at, kind, rng.choice(hosts), {"seconds": rng.choice((-3600.0, -5.0, 5.0, 3600.0))})
    pool = rng.choice(tuple(pools))
    if kind == "slice_stuck":
        return Step(at, kind, pool, {"index": rng.randrange(pools[pool]), "seconds": rng.uniform(1.0, 6.0)})
    target = pool if kind == "device_failure" else ""
    return Step(at, kind, target, {"seconds": rng.uniform(0.5, 6.0)})
