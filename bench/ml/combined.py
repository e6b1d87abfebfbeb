"""Both models together, as Fig. 18 of Pond: mispredictions against the pool share, and what Eq. 1 chooses of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.ml.evaluation import LEVELS, Curve
from pondstack.prediction.balance import Balance, Point, solve

BUDGET = 2.0
"""Mispredictions in percent that the default target leaves: 100 - [model] target_percent."""
BUDGETS: tuple[float, ...] = tuple(step / 10 for step in range(101))


@dataclass(frozen=True, slots=True)
class Insensitive:
    """The curve of a latency-insensitivity model, and the name of the data set that it was measured on."""

    points: Sequence[Point]
    data: str


def untouched_points(curve: Curve) -> list[Point]:
    """Return UM against OP of a curve, where it reaches."""
    pairs = zip(LEVELS, curve.op, strict=True)
    return [Point(level, float(op)) for level, op in pairs if not np.isnan(op)]


def frontier(insensible: Iterable[Point], untouched: Iterable[Point]) -> list[Balance]:
    """Return what Eq. 1 chooses for each budget."""
    first, second = list(insensible), list(untouched)
    return [solve(first, second, budget) for budget in BUDGETS]


def told(found: Insensitive, untouched: Sequence[Point]) -> str:
    """Return the optimiser's point in words."""
    alone = solve([], untouched, BUDGET)
    text = f"Eq. 1 at {BUDGET:g} % mispredictions: UM alone {alone.gain:.1f} % of the memory"
    both = solve(found.points, untouched, BUDGET)
    return (
        f"{text}, both {both.gain:.1f} % (LI {both.insensitive.gain:.1f} % at FP {both.insensitive.loss:.2f} %, UM "
        f"{both.untouched.gain:.1f} % at OP {both.untouched.loss:.2f} %); LI of {found.data}"
    )
