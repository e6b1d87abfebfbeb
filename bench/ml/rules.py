"""Rules that say how much an instance leaves untouched: a model, and those that need none; a margin sweeps each."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from pondstack.prediction import forest, trainer
from pondstack.prediction.examples import Example
from pondstack.prediction.features import FEATURES, GROUPS, Vocabulary, vector

Rule = Callable[[Sequence[Example]], list[float]]
"""From examples to shares (0 to 1); the margin is taken off afterwards."""
HISTORY = ("last week", "last four weeks")
MIDDLE = 0.5
"""Share of the static rule: with the margins it goes from nothing to 80 %."""
WORDS = Vocabulary()


def static(_train: Sequence[Example]) -> Rule:
    """Return the rule of the same share for all."""
    return lambda examples: [MIDDLE] * len(examples)


def size_median(train: Sequence[Example]) -> Rule:
    """Return the rule of the median share of all of that size (whole GiB), or of all where there was none."""
    shares: dict[int, list[float]] = defaultdict(list)
    for item in train:
        shares[_size(item)].append(item.share)
    medians = {size: statistics.median(values) for size, values in shares.items()}
    middle = statistics.median(item.share for item in train)
    return lambda examples: [medians.get(_size(item), middle) for item in examples]


def last_week(percentile: str) -> Callable[[Sequence[Example]], Rule]:
    """Return the maker of the rule of a percentile of the project's records of the last week; of none, nothing."""
    place = FEATURES.index(percentile)

    def predict(examples: Sequence[Example]) -> list[float]:
        rows = [vector(item.request, item.history, item.as_of, WORDS) for item in examples]
        return [0.0 if math.isnan(row[place]) else row[place] for row in rows]

    return lambda _train: predict


def model(
    without: Collection[str] = (), quantile: float = trainer.QUANTILE, **settings: object
) -> Callable[[Sequence[Example]], Rule]:
    """Return the maker of the production's model, without some groups of features, or with other settings."""
    missing = {FEATURES.index(name) for group in without for name in GROUPS[group]}

    def rows(examples: Sequence[Example]) -> list[list[float]]:
        full = (vector(item.request, item.history, item.as_of, WORDS) for item in examples)
        return [[math.nan if place in missing else value for place, value in enumerate(row)] for row in full]

    def train(examples: Sequence[Example]) -> Rule:
        trained = forest.train(rows(examples), [item.share for item in examples], quantile, **settings)
        return lambda some: trainer.shares(trained, rows(some))

    return train


def _size(item: Example) -> int:
    return round(item.request.memory_mib / 1024)
