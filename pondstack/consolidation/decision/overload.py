"""Step 2 of OpenStack Neat: which hosts are overloaded. Algorithms by name; loads in percent. Pure.

Beloglazov and Buyya, CCPE 2012, sections 5.1 (adaptive thresholds) and 5.2 (local regression).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.statistics import (
    interquartile_range,
    median_absolute_deviation,
    tricube_line,
)

MAD_SAFETY, IQR_SAFETY, REGRESSION_SAFETY = 2.5, 1.5, 1.2
"""The paper's."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One algorithm. `threshold`: the load at which a host is overloaded, by its history, in percent.

    `adaptive`: it needs a history of [consolidation] readings.
    """

    threshold: Callable[[Sequence[float], Settings, float], float]
    adaptive: bool = True


def _static(_load: Sequence[float], settings: Settings, _copy_seconds: float) -> float:
    return settings.overload_percent


def _mad(load: Sequence[float], settings: Settings, _copy_seconds: float) -> float:
    """T = 1 - s * MAD: the more the load varies, the more room is left."""
    return 100.0 - _safety(settings, MAD_SAFETY) * median_absolute_deviation(load)


def _iqr(load: Sequence[float], settings: Settings, _copy_seconds: float) -> float:
    """T = 1 - s * IQR."""
    return 100.0 - _safety(settings, IQR_SAFETY) * interquartile_range(load)


def _regression(load: Sequence[float], settings: Settings, copy_seconds: float) -> float:
    """A host is overloaded where s times the load that is predicted for the end of its longest migration is all of it.

    As a threshold of the present load: what of the 100 % the way to that end takes.
    """
    intercept, slope = tricube_line(load)
    steps = copy_seconds / settings.step_seconds
    predicted = intercept + slope * (len(load) + steps)
    return load[-1] - (_safety(settings, REGRESSION_SAFETY) * predicted - 100.0)


def _safety(settings: Settings, own: float) -> float:
    return own if settings.safety is None else settings.safety


ALGORITHMS: Mapping[str, Overload] = {
    "static": Overload(_static, adaptive=False),
    "mad": Overload(_mad),
    "iqr": Overload(_iqr),
    "local-regression": Overload(_regression),
}
