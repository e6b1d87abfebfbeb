"""Histories in which hosts lend each other memory. Their seeds are a stream of their own: no other history moves."""

from dataclasses import replace
from random import Random
from typing import Any

from ..plan import SECONDS, History, Step, fault
from . import shortage

BUFFER_MIB = 1
MOST_BUFFERS = 4

KINDS = {
    "lose": 3,
    "delay": 5,
    "duplicate": 3,
    "cut": 3,
    "crash": 5,
    "pause": 4,
    "lose_commit": 2,
    "crash_agent": 4,
    "pause_agent": 3,
    "host_death": 2,
    "database_down": 1,
    "cut_broker": 1,
    "lender_death": 2,
    "lender_freeze": 2,
}
"""Kinds of faults and how often they are drawn."""

REVOKE_PARTLY = "revoke_partly"
"""A kind of its own stream: the other faults of a seed are what they would be without it.

By the stream's name the seeds that regressions and issues name (3371, 3563, 901954, 904699, 20262026) draw none.
"""
PARTLY_SHARE = 0.4
CLAIMS_SHARE = 0.4
"""So many histories have claims, of which the same holds."""
CRASH = "data_plane_crash"
ESCROW_SHARE = 0.6
"""So many histories have hosts that sleep while others borrow, and data planes that crash; of these, too."""
MOVES_SHARE = 0.5
"""So many histories have guests that move live with what they have borrowed; by the stream's name none of these."""
REFERENCES_SHARE = 0.85
"""So many of these are handed over by reference, where the destination can have the buffers."""
OFFERS_SHARE = 0.3
"""So many histories have a Placement that is told of lent memory; by the stream's name none of these."""
LEAVE_SECONDS = 6.0
"""Within so many seconds most lenders have taken back what they lent, at the end of a history."""
BACK_SECONDS = 1.0
"""A claim that comes back does so within half of [controller] unclaimed_grace_seconds."""


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others."""
    if shortage.is_one(seed, only):
        return shortage.draw(seed)
    rng = Random(f"lending {seed}")
    controllers = tuple(f"c{number}" for number in range(1, rng.choice((3, 3, 4))))
    hosts = tuple(f"h{number}" for number in range(1, rng.choice((4, 4, 5))))
    operations = tuple(_operations(rng, controllers, hosts))
    faults = tuple(_faults(rng, controllers, hosts, only))
    if not only:
        faults = _with_half_answers(seed, hosts, faults)
    history = History(seed, controllers, hosts, {"pool0": 3}, 0, True, operations, faults, lending=True)
    return _with_offers(_with_moves(_with_escrow(_with_claims(history), only)))


def _operations(rng: Random, controllers: tuple[str, ...], hosts: tuple[str, ...]) -> list[Step]:
    steps = [
        Step(rng.uniform(1.0, 4.0), "lend", host, {"buffers": rng.randint(1, MOST_BUFFERS)})
        for host in rng.sample(hosts, 2)
    ]
    for _ in range(rng.randint(6, 22)):
        kind = rng.choices(
            ("borrow", "give_back", "lend", "reclaim", "sleep", "failover", "restart"), (9, 5, 2, 4, 2, 1, 1)
        )[0]
        steps.append(_operation(rng, kind, controllers, hosts))
    return sorted(steps, key=lambda step: step.at)


def _operation(rng: Random, kind: str, controllers: tuple[str, ...], hosts: tuple[str, ...]) -> Step:
    at, target = rng.uniform(3.0, SECONDS), rng.choice(hosts)
    values: dict[str, Any] = {}
    if kind == "borrow":
        values = {"buffers": rng.randint(1, 3), "guaranteed": rng.random() < 0.5, "forgets": rng.random() < 0.15}
    elif kind == "lend":
        values = {"buffers": rng.randint(1, MOST_BUFFERS)}
    elif kind == "give_back":
        values = {"which": rng.randrange(4)}
    elif kind == "reclaim":
        values = {"buffers": rng.randint(1, MOST_BUFFERS), "seconds": rng.choice((1.0, 4.0, 20.0))}
    elif kind == "sleep":
        values = {"seconds": rng.uniform(2.0, 10.0)}
    elif kind == "failover":
        target = rng.choice(("", *controllers))
    else:
        target, values = "leader", {"seconds": rng.uniform(0.1, 4.0)}
    return Step(at, kind, target, values)


def _with_half_answers(seed: int, hosts: tuple[str, ...], faults: tuple[Step, ...]) -> tuple[Step, ...]:
    rng = Random(f"keys partly {seed}")
    if rng.random() >= PARTLY_SHARE:
        return faults
    more = (_revoke_partly(rng, rng.uniform(2.0, SECONDS), hosts) for _ in range(2))
    return tuple(sorted((*faults, *more), key=lambda step: step.at))


def _with_claims(history: History) -> History:
    """Return the history, in some with Placement's claims: some are missing, too small, or go; and books are lost."""
    rng, hosts = Random(f"loans have claims {history.seed}"), history.hosts
    if rng.random() >= CLAIMS_SHARE:
        return history
    operations, faults = list(history.operations), list(history.faults)
    for _ in range(4):
        wanted = rng.randint(1, 3)
        claimed = rng.choice((wanted, wanted, wanted - 1, 0)) * BUFFER_MIB
        values = {"buffers": wanted, "guaranteed": True, "forgets": False, "claimed_mib": claimed}
        operations.append(Step(rng.uniform(3.0, SECONDS), "borrow", rng.choice(hosts), values))
    for _ in range(5):
        # Back before the grace has passed, as after a migration that fails, or gone for good.
        values = {"which": rng.randrange(4), "seconds": rng.choice((0.0, rng.uniform(0.1, BACK_SECONDS)))}
        operations.append(Step(rng.uniform(6.0, SECONDS), "unclaim", rng.choice(hosts), values))
    if rng.random() < 0.5:
        values = {"seconds": rng.uniform(0.1, 3.0)}
        faults.append(Step(rng.uniform(6.0, SECONDS), "lose_books", rng.choice(hosts), values))
    steps = (tuple(sorted(all_, key=lambda step: step.at)) for all_ in (operations, faults))
    return replace(history, operations=next(steps), faults=next(steps), claims=True)


def _with_escrow(history: History, only: tuple[str, ...]) -> History:
    """Return the history, in some with hosts that sleep for longer, borrowers meanwhile, and crashes of data planes."""
    rng, hosts = Random(f"others borrow of who sleeps {history.seed}"), history.hosts
    if rng.random() >= ESCROW_SHARE:
        return history
    operations, faults = list(history.operations), list(history.faults)
    for _ in range(rng.randint(1, 2)):
        sleeper, at, seconds = rng.choice(hosts), rng.uniform(4.0, SECONDS / 2), rng.uniform(6.0, 12.0)
        operations.append(Step(at, "sleep", sleeper, {"seconds": seconds}))
        for _ in range(rng.randint(2, 5)):
            host = rng.choice([name for name in hosts if name != sleeper])
            values = {"buffers": rng.randint(1, 3), "guaranteed": rng.random() < 0.3, "forgets": rng.random() < 0.1}
            operations.append(Step(at + rng.uniform(3.0, 3.0 + seconds), "borrow", host, values))
            if rng.random() < 0.6:
                later = at + rng.uniform(4.0, 4.0 + seconds)
                operations.append(Step(later, "give_back", host, {"which": rng.randrange(4)}))
        if not only or CRASH in only:
            for _ in range(rng.randint(0, 2)):
                faults.append(Step(at + rng.uniform(2.0, 3.0 + seconds), CRASH, rng.choice(hosts)))
    steps = (tuple(sorted(all_, key=lambda step: step.at)) for all_ in (operations, faults))
    return replace(history, operations=next(steps), faults=next(steps))


def _with_moves(history: History) -> History:
    """Return the history, in some with guests that move with their guaranteed loans, as soon as there are some."""
    rng, hosts = Random(f"live moves of loans 54 {history.seed}"), history.hosts
    if rng.random() >= MOVES_SHARE:
        return history
    operations = list(history.operations)
    by_reference = Random(f"by reference {history.seed}")
    for _ in range(3):
        source, target = rng.sample(hosts, 2)
        at, buffers = rng.uniform(3.0, SECONDS), rng.randint(1, 2)
        borrow = {"buffers": buffers, "guaranteed": True, "forgets": False}
        move = {"which": rng.randrange(4), "to": target, "seconds": rng.uniform(0.1, 6.0), "fails": rng.random() < 0.4}
        move |= {"by_reference": by_reference.random() < REFERENCES_SHARE, "fills": by_reference.uniform(0.1, 4.0)}
        operations += [Step(at, "borrow", source, borrow), Step(at + rng.uniform(0.5, 4.0), "move", source, move)]
    return replace(history, operations=tuple(sorted(operations, key=lambda step: step.at)))


def _with_offers(history: History) -> History:
    """Return the history, in some with an inventory of lent memory in Placement; much happens as lenders leave."""
    rng = Random(f"Placement is told of lent memory 9977 {history.seed}")
    if rng.random() >= OFFERS_SHARE:
        return history
    steps = []
    for _ in range(rng.randint(1, 5)):
        kind, at = rng.choice(("placement_down", "audit", "failover")), rng.uniform(0.0, LEAVE_SECONDS)
        steps.append(Step(at, kind, "", {"seconds": rng.uniform(0.5, 4.0)}))
    return replace(history, offers=tuple(steps))


def _revoke_partly(rng: Random, at: float, hosts: tuple[str, ...]) -> Step:
    """Return a fault: a lender ends only some of the keys that it is told to end, for so many seconds."""
    return Step(at, REVOKE_PARTLY, rng.choice(hosts), {"seconds": rng.uniform(2.0, 12.0)})


def _faults(rng: Random, controllers: tuple[str, ...], hosts: tuple[str, ...], only: tuple[str, ...]) -> list[Step]:
    steps = []
    for _ in range(12 if only else rng.choice((0, 1, 2, 3, 4, 5, 6, 8))):
        at = rng.uniform(2.0, SECONDS)
        kind = rng.choice(only) if only else rng.choices(tuple(KINDS), tuple(KINDS.values()))[0]
        if kind == REVOKE_PARTLY:
            steps.append(_revoke_partly(rng, at, hosts))
        elif kind in ("lender_death", CRASH):
            steps.append(Step(at, kind, rng.choice(hosts)))
        elif kind == "lender_freeze":
            steps.append(Step(at, kind, rng.choice(hosts), {"seconds": rng.uniform(0.5, 6.0)}))
        else:
            steps.append(fault(rng, at, kind, controllers, hosts, {"pool0": 3}))
    return sorted(steps, key=lambda step: step.at)
