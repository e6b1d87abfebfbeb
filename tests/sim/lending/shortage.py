"""Histories of one shortage that active hosts and best-effort loans can meet together (Zombieland, section 4.4).

Nothing fails in them but messages that are late or come twice: that there is enough is known beforehand, so that a
refusal is a fault, and so is one that is asked to give more than is missing.
"""

from dataclasses import replace
from random import Random

from ..plan import History, Step, fault

SHORTAGE = "shortage"
"""The kind by which variants have such histories."""
SHARE = 0.12
INSISTS_SECONDS = 25.0


def is_one(seed: int, only: tuple[str, ...]) -> bool:
    """Return whether the history of a seed is one of these; by the stream's name none that a test names."""
    return only == (SHORTAGE,) or (not only and Random(f"one shortage of all {seed}").random() < SHARE)


def draw(seed: int) -> History:
    """Return it: h1 lends, h2 swaps to some of that, h3 has room for more, h4 is promised what takes all three."""
    rng = Random(f"shortage {seed}")
    lent, room = rng.randint(2, 4), rng.randint(1, 3)
    swapped = rng.randint(1, lent)
    wanted = rng.randint(lent - swapped + 1, lent + room)
    plain = {"guaranteed": False, "forgets": False}
    missing = wanted - (lent - swapped)
    insists = {"guaranteed": True, "forgets": False, "insists": INSISTS_SECONDS, "missing": missing, "roomy": "h3"}
    operations = (
        Step(rng.uniform(1.0, 2.0), "lend", "h1", {"buffers": lent}),
        Step(rng.uniform(9.0, 10.0), "borrow", "h2", {"buffers": swapped, **plain}),
        Step(rng.uniform(16.0, 18.0), "borrow", "h4", {"buffers": wanted, **insists}),
    )
    hosts, controllers = ("h1", "h2", "h3", "h4"), ("c1", "c2")
    times = sorted(rng.uniform(10.5, 30.0) for _ in range(rng.choice((0, 0, 1, 2))))
    faults = tuple(fault(rng, at, rng.choice(("delay", "duplicate")), controllers, hosts, {"pool0": 3}) for at in times)
    rooms = {"h1": lent, "h2": 0, "h3": room, "h4": 0}
    return History(seed, controllers, hosts, {"pool0": 3}, 0, True, operations, faults, lending=True, rooms=rooms)


def unassured(history: History) -> History:
    """Return a history in which nobody knows that there is enough, since others take memory of the hosts, too."""
    known = {"insists", "missing", "roomy"}
    steps = (
        replace(step, values={name: value for name, value in step.values.items() if name not in known})
        for step in history.operations
    )
    return replace(history, operations=tuple(steps))
