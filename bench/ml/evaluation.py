"""Over-predictions against untouched memory, by rule: folds of VMs, forward in time, intervals by bootstrap."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.ml.parts import Fold
from bench.ml.rules import Rule
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction.examples import Example
from pondstack.prediction.features import spread
from pondstack.prediction.untouched import MARGINS, SPREAD, less, pool_mib

Array = NDArray[np.float64]
Maker = Callable[[Sequence[Example]], Rule]
LEVELS: tuple[float, ...] = tuple(float(level) for level in range(5, 51))
"""UM in percent at which OP is told."""
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Swept:
    """One rule on one test of all VMs of a part: pool memory and over-predictions by case and margin."""

    numbers: list[str]
    memory: Array
    pool: Array
    over: Array


@dataclass(frozen=True, slots=True)
class Curve:
    """OP in percent at LEVELS, as the mean over the repetitions; `draws`: the same of each bootstrap sample."""

    op: Array
    draws: Array

    def at(self, level: float) -> float:
        """Return OP at a UM."""
        return float(self.op[LEVELS.index(level)])

    def interval(self, level: float) -> tuple[float, float]:
        """Return its interval of 95 %."""
        low, high = np.nanpercentile(self.draws[:, LEVELS.index(level)], INTERVAL)
        return float(low), float(high)

    def times_better(self, other: "Curve", level: float) -> tuple[float, float, float]:
        """Return how many times fewer over-predictions than another rule at a UM: figure, least and most of 95 %."""
        place = LEVELS.index(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = other.draws[:, place] / self.draws[:, place]
            low, high = np.nanpercentile(ratios, INTERVAL, method="nearest")  # some may be infinite
            return float(other.op[place] / self.op[place]), float(low), float(high)


Shape = Callable[[float, float, int, float], float]
"""What a margin leaves of a share: share, margin, memory in MiB, spread of the project's records."""


def uniform(share: float, margin: float, _memory_mib: int, _spread: float) -> float:
    """Take the same share off each VM."""
    return share - margin


def sweep(maker: Maker, folds: Sequence[Fold], shape: Shape = less) -> Swept:
    """Train a rule for each fold, and try it with all margins."""
    tests = [item for fold in folds for item in fold.test]
    examples = [item.example for item in tests]
    shares = [share for fold in folds for share in _shares(maker, fold)]
    pool = np.array(
        [_given(share, item, shape) for share, item in zip(shares, examples, strict=True)], dtype=np.float64
    )
    untouched = np.array([[item.untouched_mib] for item in examples])
    memory = np.array([item.request.memory_mib for item in examples], dtype=np.float64)
    return Swept([item.number for item in tests], memory, pool, (pool > untouched).astype(np.float64))


def _given(share: float, item: Example, shape: Shape) -> list[int]:
    mib, varied = item.request.memory_mib, spread(item.history, SPREAD)
    left = (shape(share, margin, mib, varied) for margin in reversed(MARGINS))
    return [pool_mib(value, mib, DEFAULT_SLICE_MIB) for value in left]


def _shares(maker: Maker, fold: Fold) -> list[float]:
    return maker(fold.train)([item.example for item in fold.test])


def curve(tests: Sequence[Swept], draws: int, seed: int) -> Curve:
    """Return the mean curve over the repetitions; each bootstrap sample draws VMs, the same for all rules."""
    numbers = sorted({number for test in tests for number in test.numbers})
    place = {number: index for index, number in enumerate(numbers)}
    where = [np.array([place[number] for number in test.numbers]) for test in tests]
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers)), size=draws).astype(np.float64)
    once = np.ones((1, len(numbers)))
    return Curve(_mean(tests, where, once)[0], _mean(tests, where, weights))


def _mean(tests: Sequence[Swept], where: Sequence[NDArray[np.int64]], weights: Array) -> Array:
    return np.mean([_levels(test, weights[:, places]) for test, places in zip(tests, where, strict=True)], axis=0)


def _levels(test: Swept, weights: Array) -> Array:
    """Return OP at LEVELS for each row of weights; NaN where a rule does not reach that UM."""
    um = 100 * (weights @ test.pool) / (weights @ test.memory)[:, None]
    op = 100 * (weights @ test.over) / weights.sum(axis=1)[:, None]
    return np.array([np.interp(LEVELS, one, other, right=np.nan) for one, other in zip(um, op, strict=True)])
