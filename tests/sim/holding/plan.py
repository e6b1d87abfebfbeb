"""Histories in which an operator has hosts hold slices. What else happens in them is drawn as in those of slices."""

from dataclasses import replace
from random import Random

from .. import plan
from ..plan import SECONDS, History, Step

WANT, FORGET = "want", "forget"
KINDS = (WANT, FORGET)
"""What an operator does: has a host hold so many slices; drops the claims of all host slices (`nova-manage placement
audit --delete`)."""
APART_SECONDS = 3.0


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with many faults of these kinds and no others."""
    history = plan.draw(seed, only=only)
    rng = Random(f"holding {seed}")
    steps = [*history.operations, *_wants(rng, history)]
    if rng.random() < 0.3:
        steps.append(Step(rng.uniform(8.0, SECONDS), FORGET, rng.choice(tuple(history.pools))))
    drain = rng.random() < 0.5
    return replace(history, operations=tuple(sorted(steps, key=lambda step: step.at)), holding=True, drain=drain)


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
