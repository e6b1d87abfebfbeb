"""Draws histories in which guests move live, often, and take their slices along."""

from dataclasses import replace
from random import Random

from tests.sim import plan
from tests.sim.plan import SECONDS, History, Step

MOST_MOVES = 3
"""Of one guest, beside what it does else."""


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed, as tests.sim.plan.draw."""
    drawn, rng = plan.draw(seed, only=only), Random(f"heirs {seed}")
    guests = sorted({step.target for step in drawn.operations if step.kind == "boot"})
    moves = [_move(rng, guest, drawn.hosts) for guest in guests for _ in range(rng.randint(0, MOST_MOVES))]
    steps = tuple(sorted((*drawn.operations, *moves), key=lambda step: step.at))
    return replace(drawn, operations=steps, hands_over=True)


def _move(rng: Random, guest: str, hosts: tuple[str, ...]) -> Step:
    values = {"host": rng.choice(hosts), "seconds": rng.uniform(0.1, 4.0)}
    return Step(rng.uniform(2.0, SECONDS), "migrate", guest, values)
