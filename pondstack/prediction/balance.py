"""Eq. 1 of Pond (section 4.4): how much is risked on which of the two models. Pure.

Maximise LI(PDM) + UM subject to FP(PDM) + OP <= 100 - TP, exactly, over the points that were measured.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a model: `gain` (LI or UM) and `loss` (FP or OP) in percent, and what sets it."""

    gain: float
    loss: float
    setting: Mapping[str, Any] = field(default_factory=dict)


OFF = Point(0.0, 0.0)
"""A model that is not used gains nothing and risks nothing."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The points chosen, one of each model."""

    insensitive: Point
    untouched: Point

    @property
    def gain(self) -> float:
        """Return LI + UM in percent: the pool share that is expected."""
        return self.insensitive.gain + self.untouched.gain

    @property
    def loss(self) -> float:
        """Return FP + OP in percent: the mispredictions that are expected."""
        return self.insensitive.loss + self.untouched.loss


def solve(insensitive: Iterable[Point], untouched: Iterable[Point], budget: float) -> Balance:
    """Return the pair of the greatest gain within `budget` (100 - TP, percent); of equal ones that of the least loss.

    The curves need not be monotone. A model may be left off, and is where nothing else is within the budget.
    """
    best = _best_within(untouched)
    losses = [point.loss for point in best]
    chosen = Balance(OFF, OFF)
    for first in [OFF, *insensitive]:
        within = _within(losses, first.loss, budget)
        if within:
            chosen = max(chosen, Balance(first, best[within - 1]), key=lambda pair: (pair.gain, -pair.loss))
    return chosen


def _within(losses: list[float], risked: float, budget: float) -> int:
    """Return how many of the losses, which ascend, the budget still bears."""
    return bisect_right(losses, budget, key=lambda loss: risked + loss)


def _best_within(points: Iterable[Point]) -> list[Point]:
    """Return the points worth a choice: by loss, each gains more than all that lose less."""
    best: list[Point] = []
    for point in sorted([OFF, *points], key=lambda point: (point.loss, -point.gain)):
        if not best or point.gain > best[-1].gain:
            best.append(point)
    return best
