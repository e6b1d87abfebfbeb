"""What happens in which order and when: all from the seed."""

import random
from dataclasses import dataclass

from tests.robustness.extension.faults import KINDS

EARLY, LATE = 0.05, 0.35
"""When in its share of the time an event happens: early, so that there is time to recover."""


@dataclass(frozen=True, slots=True)
class Step:
    """An event, `at` so much of the whole time, with a seed of its own."""

    kind: str
    at: float
    seed: int


def make_plan(seed: int, events: int) -> list[Step]:
    """Return the events of a run: every kind as often as each other one, as far as that can be."""
    rng = random.Random(f"extension-{seed}")
    names = sorted(KINDS)
    rest = rng.sample(names, events % len(names))
    kinds = names * (events // len(names)) + rest
    rng.shuffle(kinds)
    return [Step(kind, (at + rng.uniform(EARLY, LATE)) / events, rng.getrandbits(32)) for at, kind in enumerate(kinds)]
