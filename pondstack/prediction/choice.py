"""Eq. 1 of Pond for the models that serve: solved again whenever one of them, or what is allowed, changes. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.prediction import latency
from pondstack.prediction.balance import Balance, Point, solve
from pondstack.prediction.risk import NO_PDM

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows, in percent: TP, and the most OP and the most FP of each model by itself."""

    target_percent: float
    over_prediction_percent: float
    false_positive_percent: float

    @classmethod
    def of(cls, group: Any) -> "Limits":
        """Return those of [model]."""
        return cls(group.target_percent, group.over_prediction_percent, group.false_positive_percent)


def choose(untouched: Manifest | None, sensitivity: Manifest | None, limits: Limits) -> dict[str, Balance]:
    """Return the points of both models for each PDM that there is a curve for, and for none (NO_PDM).

    A model that does not serve is None, and off. Each model stays below its own cap besides.
    """
    over = _within(curve_of(untouched), limits.over_prediction_percent)
    budget = 100.0 - limits.target_percent
    chosen = {NO_PDM: solve([], over, budget)}
    for pdm in [] if sensitivity is None else sensitivity["curves"]:
        marked = _within(latency.points_of(sensitivity or {}, float(pdm)), limits.false_positive_percent)
        chosen[pdm] = solve(marked, over, budget)
    return chosen


def _within(points: Iterable[Point], most: float) -> list[Point]:
    return [point for point in points if point.loss <= most]


def curve_of(untouched: Manifest | None) -> Iterable[Point]:
    """Return the measured points of an untouched-memory model; none of none."""
    for item in [] if untouched is None else untouched["curve"]:
        setting = {name: value for name, value in item.items() if name not in ("gain", "loss")}
        yield Point(item["gain"], item["loss"], setting)
