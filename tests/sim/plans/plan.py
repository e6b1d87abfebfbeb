"""Histories in which hosts are emptied, lend, sleep and wake, by orders and by plans; of a stream of their own."""

from random import Random
from typing import Any

from ..lending.plan import CRASH
from ..plan import SECONDS, History, Step, fault

BOOT, DELETE, PLAN, CANCEL, FREEZE = "boot_server", "delete_server", "plan", "cancel_plan", "freeze"
SUSPEND, WAKE, DRAIN, RESTORE, DISABLE = "suspend_host", "wake_host", "drain_host", "restore_host", "disable_host"
OPERATIONS = {SUSPEND: 4, WAKE: 4, PLAN: 6, CANCEL: 3, FREEZE: 1, DRAIN: 2, RESTORE: 2, DISABLE: 1, BOOT: 3, DELETE: 2}
"""What Nova's users, operators of the cloud and of consolidation do, and how often it is drawn."""

WAKER_DEATH, NOVA_DOWN, NOVA_LOSSY = "waker_death", "nova_down", "nova_lossy"
FAULTS = {
    "lose": 3,
    "delay": 4,
    "duplicate": 2,
    "cut": 2,
    "crash": 8,
    "pause": 6,
    "lose_commit": 2,
    "crash_agent": 4,
    "pause_agent": 4,
    "host_death": 3,
    "compute_crash": 4,
    "compute_pause": 3,
    "database_down": 1,
    "placement_down": 1,
    "cut_broker": 1,
    "lender_freeze": 1,
    CRASH: 1,
    WAKER_DEATH: 2,
    NOVA_DOWN: 2,
    NOVA_LOSSY: 3,
}
"""Kinds of faults and how often they are drawn."""

COLLISIONS = {SUSPEND: (RESTORE, WAKE, DRAIN), PLAN: (SUSPEND, SUSPEND, FREEZE), DRAIN: (SUSPEND,), FREEZE: (SUSPEND,)}
COLLISIONS_SHARE = 0.5
"""So many histories have orders that meet others; by the stream's name none that a regression names."""

MOST_MIB = 3
"""The largest server; a host has guests.plan.HOST_MIB."""
ROOMS = 6
"""Buffers that a host can lend."""
POOLS = {"pool0": 1}


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others."""
    rng = Random(f"plans {seed}")
    controllers = tuple(f"c{number}" for number in range(1, rng.choice((3, 3, 4))))
    hosts = tuple(f"h{number}" for number in range(1, rng.choice((4, 4, 5))))
    operations = [_boot(rng, rng.uniform(2.5, 5.0)) for _ in range(rng.randint(2, 6))]
    kinds, weights = tuple(OPERATIONS), tuple(OPERATIONS.values())
    operations += [_operation(rng, rng.choices(kinds, weights)[0], hosts) for _ in range(rng.randint(4, 14))]
    operations.append(_operation(rng, rng.choice((PLAN, PLAN, SUSPEND)), hosts))
    operations += _loans(rng, hosts)
    operations += _collisions(seed, hosts, operations)
    if rng.random() < 0.3:
        operations.append(Step(rng.uniform(4.0, SECONDS), "failover", rng.choice(("", *controllers))))
    faults = [_fault(rng, controllers, hosts, only) for _ in range(12 if only else rng.choice((0, 1, 2, 3, 4, 6, 8)))]
    return History(
        seed,
        controllers,
        hosts,
        POOLS,
        0,
        True,
        tuple(sorted(operations, key=lambda step: step.at)),
        tuple(sorted(faults, key=lambda step: step.at)),
        lending=True,
        guests=True,
        plans=True,
        rooms=dict.fromkeys(hosts, ROOMS),
    )


def _boot(rng: Random, at: float) -> Step:
    return Step(at, BOOT, "", {"mib": rng.randint(1, MOST_MIB), "cpus": rng.choice((0.2, 0.5, 1.0, 3.0))})


def _operation(rng: Random, kind: str, hosts: tuple[str, ...]) -> Step:
    at, host = rng.uniform(5.0, SECONDS), rng.choice(hosts)
    if kind == BOOT:
        return _boot(rng, at)
    values: dict[str, Any] = {}
    if kind == PLAN:
        afterwards = rng.choice(("suspend", "suspend", "suspend", "keep"))
        values = {"afterwards": afterwards, "seconds": rng.uniform(0.1, 3.0), "applied": rng.random() < 0.9}
        host = ""
    elif kind in (FREEZE, DISABLE):
        values = {"seconds": rng.uniform(0.5, 8.0), "back": rng.random() < 0.6}
    elif kind in (DELETE, CANCEL):
        values, host = {"which": rng.randrange(8)}, ""
    return Step(at, kind, host, values)


def _collisions(seed: int, hosts: tuple[str, ...], operations: list[Step]) -> list[Step]:
    """Return orders that come while another one on the same host is under way, in some histories."""
    rng = Random(f"orders meet 21 {seed}")
    if rng.random() >= COLLISIONS_SHARE:
        return []
    steps = []
    for step in operations:
        if step.kind in COLLISIONS and step.at < SECONDS - 2.0:
            kind = rng.choice(COLLISIONS[step.kind])
            values: dict[str, Any] = {"seconds": rng.uniform(3.0, 8.0)} if kind == FREEZE else {}
            target = step.target or rng.choice(hosts)
            steps.append(Step(step.at + rng.uniform(0.2, min(8.0, SECONDS - step.at)), kind, target, values))
    return steps


def _loans(rng: Random, hosts: tuple[str, ...]) -> list[Step]:
    steps = [Step(rng.uniform(2.5, 5.0), "lend", rng.choice(hosts), {"buffers": rng.randint(1, 3)})]
    for _ in range(rng.randint(2, 8)):
        at, host = rng.uniform(6.0, SECONDS), rng.choice(hosts)
        values = {"buffers": rng.randint(1, 3), "guaranteed": rng.random() < 0.3, "forgets": rng.random() < 0.1}
        steps.append(Step(at, "borrow", host, values))
        if rng.random() < 0.4:
            steps.append(Step(min(SECONDS, at + rng.uniform(1.0, 12.0)), "give_back", host, {"which": 0}))
    return steps


def _fault(rng: Random, controllers: tuple[str, ...], hosts: tuple[str, ...], only: tuple[str, ...]) -> Step:
    at = rng.uniform(4.0, SECONDS)
    kind = rng.choice(only) if only else rng.choices(tuple(FAULTS), tuple(FAULTS.values()))[0]
    if kind in (WAKER_DEATH, CRASH):
        return Step(at, kind, rng.choice(hosts))
    if kind in ("compute_crash", "compute_pause", "lender_freeze"):
        return Step(at, kind, rng.choice(hosts), {"seconds": rng.choice((0.5, 2.0, 6.0))})
    if kind in (NOVA_DOWN, NOVA_LOSSY):
        return Step(at, kind, "", {"seconds": rng.uniform(0.5, 6.0)})
    return fault(rng, at, kind, controllers, hosts, POOLS)
