"""Robust spreads and a local regression of a short series of loads. Pure.

Beloglazov and Buyya, "Optimal online deterministic algorithms and adaptive heuristics ... for dynamic consolidation of
virtual machines", CCPE 2012, sections 5.1 and 5.2: what OpenStack Neat detects overload with.
"""

import math
from collections.abc import Sequence
from statistics import median


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Return the median distance of values from their median, in their unit."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def interquartile_range(values: Sequence[float]) -> float:
    """Return the distance of the third quartile from the first, by linear interpolation, in the values' unit."""
    ordered = sorted(values)
    return _quantile(ordered, 0.75) - _quantile(ordered, 0.25)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def tricube_line(values: Sequence[float]) -> tuple[float, float]:
    """Return intercept and slope, by step, of the line through values at 1, 2, ... by weighted least squares.

    Weights: tricube, (1 - u^3)^3, where u is the distance from the newest value by that of the oldest (Loess).
    """
    count = len(values)
    if count < 3:  # the oldest one has no weight
        slope = values[-1] - values[0] if count == 2 else 0.0
        return values[-1] - slope * count, slope
    weights = [(1 - ((count - step) / (count - 1)) ** 3) ** 3 for step in range(1, count + 1)]
    total = sum(weights)
    mean_step = sum(weight * step for step, weight in enumerate(weights, 1)) / total
    mean_value = sum(weight * value for weight, value in zip(weights, values, strict=True)) / total
    spread = sum(weight * (step - mean_step) ** 2 for step, weight in enumerate(weights, 1))
    both = sum(
        weight * (step - mean_step) * (value - mean_value)
        for step, (weight, value) in enumerate(zip(weights, values, strict=True), 1)
    )
    slope = both / spread
    return mean_value - slope * mean_step, slope
