"""Over-predictions against untouched memory as Pond counts them (6.4.2, Fig. 19), with intervals by bootstrap.

UM is the pool memory of all VMs in percent of their memory, in GiB: the share of the cluster's DRAM that Eq. 1
maximises. OP is the percentage of starts, large or small, that touch more than was predicted. VMs are resampled, with
all of their starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.ml.shapes import Array

LEVELS: tuple[float, ...] = tuple(float(level) for level in range(5, 51))
"""UM in percent at which OP is told."""
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Swept:
    """One rule on all tests: pool memory and over-predictions by start and operating point, the most careful first."""

    numbers: Sequence[str]
    memory: Array
    pool: Array
    over: Array

    @property
    def um(self) -> Array:
        """Return UM in percent, by operating point."""
        return 100 * self.pool.sum(axis=0) / self.memory.sum()

    @property
    def op(self) -> Array:
        """Return OP in percent, by operating point."""
        return 100 * self.over.mean(axis=0)


@dataclass(frozen=True, slots=True)
class Curve:
    """OP in percent at LEVELS; `draws`: the same of each bootstrap sample."""

    op: Array
    draws: Array

    def at(self, level: float) -> float:
        """Return OP at a UM."""
        return float(self.op[LEVELS.index(level)])

    def interval(self, level: float) -> tuple[float, float]:
        """Return its interval of 95 %."""
        found = self.draws[:, LEVELS.index(level)]
        if np.isnan(found).all():
            return float("nan"), float("nan")
        low, high = np.nanpercentile(found, INTERVAL)
        return float(low), float(high)

    def times_better(self, other: "Curve", level: float) -> tuple[float, float, float]:
        """Return how many times fewer over-predictions than another rule at a UM: figure, least and most of 95 %."""
        place = LEVELS.index(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = other.draws[:, place] / self.draws[:, place]
            if np.isnan(ratios).all():
                return float("nan"), float("nan"), float("nan")
            low, high = np.nanpercentile(ratios, INTERVAL, method="nearest")  # some may be infinite
            return float(other.op[place] / self.op[place]), float(low), float(high)


def curve(test: Swept, draws: int, seed: int) -> Curve:
    """Return the curve; each bootstrap sample draws VMs, the same for all rules that were tested on them."""
    numbers = sorted(set(test.numbers))
    place = {number: index for index, number in enumerate(numbers)}
    where = np.array([place[number] for number in test.numbers])
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers)), size=draws).astype(np.float64)
    return Curve(levels(test, np.ones((1, len(where))))[0], levels(test, weights[:, where]))


def levels(test: Swept, weights: Array) -> Array:
    """Return OP at LEVELS for each row of weights of the starts; NaN where a rule does not reach that UM."""
    um = 100 * (weights @ test.pool) / (weights @ test.memory)[:, None]
    op = 100 * (weights @ test.over) / weights.sum(axis=1)[:, None]
    return np.array([np.interp(LEVELS, one, other, right=np.nan) for one, other in zip(um, op, strict=True)])
