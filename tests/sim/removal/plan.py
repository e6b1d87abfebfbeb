"""Histories in which hosts and pools go, and come back. What else happens in them is drawn as in those of slices."""

from dataclasses import replace
from random import Random

from .. import plan
from ..plan import SECONDS, History, Step

DECOMMISSION, RETIRE, FENCE = "decommission", "retire", "fence"
KINDS = (DECOMMISSION, RETIRE, FENCE)
"""What an operator does: a host goes, a pool device goes, a dead host is fenced and comes back."""
FOR_EVER = 0.0
LATE_SECONDS = 12.0
"""So late a request of a late fence may be: a host is back a few seconds after its fence."""


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others.

    The database's clock does not jump: a host is removed after a silence, which would take as long as the jump.
    """
    history = plan.draw(seed, only=only)
    rng = Random(f"removal {seed}")
    steps = [*history.operations, *_hosts(rng, history), *_pools(rng, history)]
    faults = tuple(step for step in history.faults if step.kind != "clock_jump")
    return replace(history, operations=tuple(sorted(steps, key=lambda step: step.at)), faults=faults, removal=True)


def draw_late_fences(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return a history in which hosts die, are fenced and come back at once, each after a first request that is late.

    Its operator asks again under a new id when there is no answer, so that the first one may come after the host is
    back. Among the others that happens once in thousands. There are no guests: somebody would have to move them away
    before each fence.
    """
    history = plan.draw(seed, only=only or ("delay", "duplicate"))
    rng = Random(f"late fences {seed}")
    steps, faults = [], list(history.faults)
    for host in history.hosts:
        at = rng.uniform(5.0, SECONDS * 0.7)
        steps.append(Step(at, FENCE, host, {"seconds": 0.1}))
        # The first attempt comes late, and the second one of the same command is lost.
        faults.append(Step(at - 0.1, "delay", "operator", {"seconds": 0.4, "share": 1.0, "longest": LATE_SECONDS}))
        faults.append(Step(at + 0.3, "lose", "operator", {"seconds": 0.5, "share": 1.0}))
    return replace(
        history,
        operations=tuple(sorted(steps, key=lambda step: step.at)),
        faults=tuple(sorted(faults, key=lambda step: step.at)),
    )


def _hosts(rng: Random, history: History) -> list[Step]:
    """Return when hosts go; one stays. A host that comes back may have lost its disk."""
    steps = []
    for host in rng.sample(history.hosts, rng.randint(1, len(history.hosts) - 1)):
        seconds = rng.choice((FOR_EVER, 3.0, 9.0, 16.0))
        values = {"seconds": seconds, "drains": rng.random() < 0.7, "wiped": rng.random() < 0.5}
        steps.append(Step(rng.uniform(3.0, SECONDS * 0.8), DECOMMISSION, host, values))
    return steps


def _pools(rng: Random, history: History) -> list[Step]:
    """Return when pool devices are replaced; not always one is."""
    if rng.random() < 0.5:
        return []
    pool = rng.choice(tuple(history.pools))
    values = {"seconds": rng.choice((3.0, 9.0)), "drains": rng.random() < 0.7}
    return [Step(rng.uniform(3.0, SECONDS * 0.6), RETIRE, pool, values)]
