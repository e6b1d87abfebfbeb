"""Histories in which an operator has hosts hold slices. What else happens in them is drawn as in those of slices."""

from dataclasses import replace
from random import Random

from .. import plan
from ..plan import SECONDS, History, Step
from ..removal.plan import DECOMMISSION, FENCE

WANT, FORGET = "want", "forget"
KINDS = (WANT, FORGET)
"""What an operator does: has a host hold so many slices; drops the claims of all host slices (`nova-manage placement
audit --delete`)."""
APART_SECONDS = 3.0
FENCED = 0.25
"""In so many histories a host dies, is fenced, and comes back."""
REMOVED = 0.25
"""In so many another one is removed."""
PURPOSES = ("tier", "base")


def draw(seed: int, *, only: tuple[str, ...] = (), hosts_go: bool = True) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others.

    `hosts_go`: in half of the histories a host is fenced, or removed, and comes back.
    """
    history = plan.draw(seed, only=only)
    rng = Random(f"holding {seed}")
    steps = [*history.operations, *_wants(rng, history)]
    if rng.random() < 0.3:
        steps.append(Step(rng.uniform(8.0, SECONDS), FORGET, rng.choice(tuple(history.pools))))
    drain = rng.random() < 0.5
    history = replace(history, operations=tuple(steps), holding=True, drain=drain)
    if hosts_go:
        history = _with_hosts_that_go(Random(f"hosts that hold go {seed}"), history)
    return replace(history, operations=tuple(sorted(history.operations, key=lambda step: step.at)))


def _with_hosts_that_go(rng: Random, history: History) -> History:
    chance, operations = rng.random(), history.operations
    if chance < FENCED:
        values = {"seconds": rng.choice((1.0, 4.0))}
        fence = Step(rng.uniform(5.0, SECONDS * 0.7), FENCE, rng.choice(history.hosts), values)
        return replace(history, operations=(*operations, fence))
    if chance < FENCED + REMOVED:
        # It is removed after a silence, which would take as long as the database's clock jumps.
        faults = tuple(step for step in history.faults if step.kind != "clock_jump")
        return replace(history, operations=(*operations, *_removal(rng, history)), faults=faults)
    return history


def draw_late_orders(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return a history in which a host that is to hold a slice is fenced soon after, or is to hold none for a moment.

    Messages come late or twice, so that an order may come when its claim is gone. Among the others that happens once in
    thousands. There are no guests: somebody would have to move them away before the fence.
    """
    history = draw(seed, only=only or ("delay", "duplicate"), hosts_go=False)
    rng = Random(f"late orders {seed}")
    at, host, pool = rng.uniform(8.0, SECONDS * 0.7), rng.choice(history.hosts), rng.choice(tuple(history.pools))
    wants = [step for step in history.operations if step.kind == WANT]
    steps = [Step(at, WANT, host, {"pool": pool, "purpose": "base", "count": 1})]
    if rng.random() < 0.5:
        steps.append(Step(at + rng.uniform(0.0, 1.0), FENCE, host, {"seconds": 0.3}))
    else:
        again = at + rng.uniform(0.0, 1.0)
        for count in (0, 1):
            again += rng.uniform(0.1, 1.5)
            steps.append(Step(again, WANT, host, {"pool": pool, "purpose": "base", "count": count}))
    late = Step(at - 0.1, rng.choice(("delay", "duplicate")), host, {"seconds": 2.0, "share": 0.9})
    operations, faults = (*wants, *steps), (*history.faults, late)
    return replace(
        history,
        operations=tuple(sorted(operations, key=lambda step: step.at)),
        faults=tuple(sorted(faults, key=lambda step: step.at)),
    )


def _removal(rng: Random, history: History) -> list[Step]:
    """Return how a host goes and comes back: mostly it is to hold nothing any more before that, else it is refused."""
    at, host = rng.uniform(8.0, SECONDS * 0.7), rng.choice(history.hosts)
    values = {"seconds": 9.0, "drains": True, "wiped": rng.random() < 0.5}
    steps = [Step(at, DECOMMISSION, host, values)]
    if rng.random() < 0.8:
        nothing = ({"pool": pool, "purpose": purpose, "count": 0} for pool in history.pools for purpose in PURPOSES)
        steps += [Step(at - APART_SECONDS, WANT, host, values) for values in nothing]
    return steps


def _wants(rng: Random, history: History) -> list[Step]:
    """Return what is wanted when: mostly few slices, often none again, and never two changes at once."""
    steps, at = [], rng.uniform(1.0, 4.0)
    while at < SECONDS:
        values = {
            "pool": rng.choice(tuple(history.pools)),
            "purpose": rng.choice(("tier", "tier", "base")),
            "count": rng.choice((0, 0, 1, 1, 2)),
        }
        steps.append(Step(at, WANT, rng.choice(history.hosts), values))
        at += rng.uniform(APART_SECONDS, 7.0)
    return steps
