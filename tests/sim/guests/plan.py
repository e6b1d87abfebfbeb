"""Histories of lent memory in which Nova places guests on the lenders, as it draws them from a stream of its own."""

from dataclasses import replace
from random import Random

from ..lending import plan
from ..lending.shortage import unassured
from ..plan import SECONDS, History, Step

PLACE, AUDIT = "place_guest", "placement_audit"
KINDS = (PLACE, AUDIT)
"""What happens besides: Nova places a guest, and an operator has Nova delete the claims of unknown consumers."""
FAULTS = ("compute_crash", "compute_pause")
"""Kinds of faults of their own: of nova-compute."""

HOST_MIB = 9
KEPT_MIB = 1
"""What Nova keeps of it ([DEFAULT] reserved_host_memory_mb)."""
RATIOS = (1.0, 1.0, 1.0, 1.5)


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others."""
    own = tuple(kind for kind in only if kind in FAULTS)
    history = unassured(plan.draw(seed, only=tuple(kind for kind in only if kind not in FAULTS)))
    rng = Random(f"guests {seed}")
    steps = [*history.operations, *_again(rng, history), *_audits(rng)]
    steps += _places(rng, history, steps)
    faults = () if only and only == own else history.faults
    faults += tuple(_fault(rng, history, own or FAULTS) for _ in range(8 if own else rng.choice((0, 1, 2, 3))))
    return replace(
        history,
        operations=tuple(sorted(steps, key=lambda step: step.at)),
        faults=tuple(sorted(faults, key=lambda step: step.at)),
        guests=True,
        offers=None,
    )


def ratio(history: History) -> float:
    """Return the allocation ratio of all hosts of a history."""
    return Random(f"ratio {history.seed}").choice(RATIOS)


def _again(rng: Random, history: History) -> list[Step]:
    """Return when a host takes everything back, to lend as much again a moment later."""
    steps = []
    for lend in [step for step in history.operations if step.kind == "lend" and rng.random() < 0.6]:
        at = lend.at + rng.uniform(4.0, 8.0)
        back = {"buffers": plan.MOST_BUFFERS, "seconds": 1.0}
        steps += [Step(at, "reclaim", lend.target, back)]
        steps += [Step(at + rng.uniform(1.0, 4.0), "lend", lend.target, dict(lend.values)) for _ in range(2)]
    return [step for step in steps if step.at < SECONDS]


def _places(rng: Random, history: History, others: list[Step]) -> list[Step]:
    """Return when guests are placed: often at the moment at which a host is to lend."""
    lends = [step for step in others if step.kind in ("lend", "sleep")]
    steps = []
    for _ in range(rng.randint(4, 14)):
        at, host = rng.uniform(0.5, SECONDS), rng.choice(history.hosts)
        if lends and rng.random() < 0.6:
            near = rng.choice(lends)
            at, host = max(0.5, near.at + rng.uniform(-1.0, 4.0)), near.target
        values = {"mib": rng.randint(2, HOST_MIB - KEPT_MIB), "seconds": rng.choice((1.0, 4.0, 10.0, 30.0))}
        steps.append(Step(at, PLACE, host, values))
    return steps


def _audits(rng: Random) -> list[Step]:
    return [Step(rng.uniform(1.0, SECONDS), AUDIT) for _ in range(rng.choice((0, 1, 3, 6)))]


def _fault(rng: Random, history: History, kinds: tuple[str, ...]) -> Step:
    seconds = rng.choice((0.3, 1.0, 4.0, 9.0))
    return Step(rng.uniform(1.0, SECONDS), rng.choice(kinds), rng.choice(history.hosts), {"seconds": seconds})
