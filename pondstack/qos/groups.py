"""A/B: what tenants measure on VMs with a predicted split against the control group, with its interval. Pure.

A VM counts once for each metric, with the mean of its readings. The interval is a bootstrap's over VMs (percentile
method): tenants' figures have no known distribution.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pondstack.ledger.qos_records import Performance
from pondstack.prediction.control import CONTROL

PREDICTED = frozenset({"static", "untouched", "insensitive", "repredicted", "corrected"})
"""Sources of splits of the other group, pool memory or none: what `auto` decides where nobody is held back.

Those that were mitigated stay in it: a group that loses its slow ones would look better than it is.
"""
LEVEL_PERCENT = 95.0
DRAWS = 2000
LEAST_INSTANCES = 5
"""VMs of each group below which no interval is told."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric: the groups' sizes and means, and the difference (predicted less control) in percent of control.

    `low_percent`, `high_percent`: its interval; None where the groups are too small, or control's mean is 0.
    """

    metric: str
    higher_is_better: bool
    control_instances: int
    predicted_instances: int
    control_mean: float | None
    predicted_mean: float | None
    difference_percent: float | None
    low_percent: float | None
    high_percent: float | None


def compare(items: Iterable[Performance], seed: int, draws: int = DRAWS) -> list[Comparison]:
    """Return a comparison for each metric and direction, by name."""
    groups: dict[tuple[str, bool], dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for item in items:
        if item.split_source == CONTROL or item.split_source in PREDICTED:
            groups[item.metric, item.higher_is_better][item.split_source == CONTROL].append(item.mean)
    return [_compare(*key, found[True], found[False], seed, draws) for key, found in sorted(groups.items())]


def _compare(
    metric: str, higher: bool, control: Sequence[float], predicted: Sequence[float], seed: int, draws: int
) -> Comparison:
    means = _mean(control), _mean(predicted)
    difference = low = high = None
    if means[0] and means[1] is not None:
        difference = _percent(means[0], means[1])
        if min(len(control), len(predicted)) >= LEAST_INSTANCES:
            low, high = bootstrap(control, predicted, seed, draws)
    return Comparison(metric, higher, len(control), len(predicted), *means, difference, low, high)


def bootstrap(control: Sequence[float], predicted: Sequence[float], seed: int, draws: int) -> tuple[float, float]:
    """Return the interval of the difference of the means, in percent of control's; the same for the same seed."""
    source = random.Random(seed)
    found = []
    for _ in range(draws):
        base = sum(source.choices(control, k=len(control))) / len(control)
        if base:
            found.append(_percent(base, sum(source.choices(predicted, k=len(predicted))) / len(predicted)))
    found.sort()
    tail = (100.0 - LEVEL_PERCENT) / 200
    last = len(found) - 1
    return found[round(tail * last)], found[round((1 - tail) * last)]


def _percent(base: float, other: float) -> float:
    return 100.0 * (other - base) / abs(base)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
