"""Rules that say how much an instance leaves untouched: a model, and those that need none, with settings to choose of.

A family is what stands in one line of the tables: some ways to predict, each with some forms of the margin. Which one
of them counts is chosen in each fold (bench.ml.nested).
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.ml.bitbrains import Start
from bench.ml.shapes import Array, Shape
from pondstack.prediction import forest, trainer
from pondstack.prediction.features import FEATURES, GROUPS

Rule = Callable[[Sequence[Start]], Array]
"""From starts to shares (0 to 1); the margin is taken off afterwards."""
Maker = Callable[[Sequence[Start]], Rule]
HISTORY = ("last week", "last four weeks")
PERCENTILES = ("week_p20", "week_p10", "week_p5", "week_least", "weeks_p1")
QUANTILES = (0.1, 0.25, 0.5)
LEAVES = (4, 8)
SHAPES = tuple(Shape(extra, floor) for extra in (0, 4096, 16384) for floor in (None, 0.1, 0.4))
COLD_SHAPES = tuple(Shape(extra, None) for extra in (0, 4096, 16384))
"""Without history no spread is known."""


@dataclass(frozen=True, slots=True)
class Family:
    """Ways to predict by name, and forms of the margin, of which a fold chooses one each."""

    makers: Mapping[str, Maker]
    shapes: Sequence[Shape]


def size_median(train: Sequence[Start]) -> Rule:
    """Return the rule of the median share of all of that size (whole GiB), or of all where there was none."""
    shares: dict[int, list[float]] = defaultdict(list)
    for item in train:
        shares[_size(item)].append(item.example.share)
    medians = {size: statistics.median(values) for size, values in shares.items()}
    middle = statistics.median(item.example.share for item in train)
    return lambda starts: np.array([medians.get(_size(item), middle) for item in starts])


def percentile(name: str) -> Maker:
    """Return the maker of the rule of a percentile of the project's records; of none, nothing."""
    place = FEATURES.index(name)
    return lambda _train: lambda starts: np.nan_to_num(np.array([item.row[place] for item in starts]))


def model(without: Collection[str] = (), quantile: float = trainer.QUANTILE, **settings: object) -> Maker:
    """Return the maker of the production's model, without some groups of features, or with other settings."""
    missing = [FEATURES.index(name) for group in without for name in GROUPS[group]]

    def rows(starts: Sequence[Start]) -> list[list[float]]:
        found = [list(item.row) for item in starts]
        for row in found:
            for place in missing:
                row[place] = math.nan
        return found

    def train(starts: Sequence[Start]) -> Rule:
        trained = forest.train(rows(starts), [item.example.share for item in starts], quantile, **settings)
        return lambda some: np.array(trainer.shares(trained, rows(some)))

    return train


def models(without: Collection[str] = ()) -> dict[str, Maker]:
    """Return the model with the settings to choose of, by name."""
    return {
        f"quantile {quantile:g}, {leaves} leaves": model(without, quantile, num_leaves=leaves)
        for quantile in QUANTILES
        for leaves in LEAVES
    }


def _size(item: Start) -> int:
    return round(item.example.request.memory_mib / 1024)
