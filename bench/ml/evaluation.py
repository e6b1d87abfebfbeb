"""Over-predictions against untouched memory, by rule: many splits by VM, forward in time, intervals by bootstrap."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.ml.bitbrains import Start, Trace
from bench.ml.rules import Rule
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction.examples import Example
from pondstack.prediction.untouched import MARGINS, less, pool_mib

Array = NDArray[np.float64]
Maker = Callable[[Sequence[Example]], Rule]
TRAIN_UNTIL = 0.6
"""Share of the time that training may see: its weeks have ended by then."""
LEVELS: tuple[float, ...] = tuple(float(level) for level in range(5, 51))
"""UM in percent at which OP is told."""
INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Split:
    """Disjoint VMs: some for training, the others for a later test."""

    train: list[Example]
    test: list[Start]


@dataclass(frozen=True, slots=True)
class Swept:
    """One rule on one test: pool memory and over-predictions by case and margin."""

    numbers: list[str]
    memory: Array
    pool: Array
    over: Array


@dataclass(frozen=True, slots=True)
class Curve:
    """OP in percent at LEVELS, as the mean over the splits; `draws`: the same of each bootstrap sample."""

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


def splits(trace: Trace, count: int, seed: int, *, history: bool) -> list[Split]:
    """Return random splits; `history`: only starts with an earlier week, else none of them has one."""
    cut = trace.begin + (trace.end - trace.begin) * TRAIN_UNTIL
    numbers = sorted({start.number for start in trace.starts})
    found = []
    for place in range(count):
        chosen = set(random.Random(f"{seed}/{place}").sample(numbers, len(numbers) // 2))
        train = [item.example for item in trace.starts if item.number in chosen and item.example.ended_at <= cut]
        late = (item for item in trace.starts if item.number not in chosen and item.example.as_of >= cut)
        found.append(Split(train, [item for item in late if item.example.history or not history]))
    return found


def forgotten(split: Split) -> Split:
    """Return the split without any history: sizes alone are known."""
    test = [replace(item, example=replace(item.example, history=())) for item in split.test]
    return Split([replace(item, history=()) for item in split.train], test)


def sweep(maker: Maker, split: Split, *, uniform: bool = False) -> Swept:
    """Train a rule, and try it with all margins; `uniform`: the margin is the same share of each VM."""
    examples = [item.example for item in split.test]
    shares = maker(split.train)(examples)
    pool = np.array(
        [
            [
                pool_mib(share - margin if uniform else less(share, margin, mib), mib, DEFAULT_SLICE_MIB)
                for margin in reversed(MARGINS)
            ]
            for share, mib in zip(shares, (item.request.memory_mib for item in examples), strict=True)
        ],
        dtype=np.float64,
    )
    untouched = np.array([[item.untouched_mib] for item in examples])
    memory = np.array([item.request.memory_mib for item in examples], dtype=np.float64)
    return Swept([item.number for item in split.test], memory, pool, (pool > untouched).astype(np.float64))


def curve(tests: Sequence[Swept], draws: int, seed: int) -> Curve:
    """Return the mean curve over the splits; each bootstrap sample draws VMs, the same for all splits and rules."""
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
