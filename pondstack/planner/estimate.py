"""Means over seeds with their intervals."""

from collections.abc import Sequence

import numpy as np

from pondstack.planner.figures import Estimate
from pondstack.planner.settings import Settings


def estimate(by_seed: Sequence[float], settings: Settings) -> Estimate:
    """Return the mean with its percentile-bootstrap interval; of one seed, the interval is that value."""
    values = np.asarray(by_seed, np.float64)
    draw = np.random.default_rng(0)  # the same answer at each run
    means = values[draw.integers(0, len(values), (settings.resamples, len(values)))].mean(axis=1)
    tail = (100 - settings.confidence_percent) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Estimate(float(values.mean()), float(low), float(high), tuple(float(value) for value in values))
