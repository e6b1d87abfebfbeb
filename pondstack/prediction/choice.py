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
    """What the operator allows, in percent: TP, and the most OP of the untouched-memory model by itself."""

    target_percent: float
    over_prediction_percent: float


def choose(untouched: Manifest | None, sensitivity: Manifest | None, limits: Limits) -> dict[str, Balance]:
    """Return the points of both models for each PDM that there is a curve for, and for none (NO_PDM).

    A model that does not serve is None, and off. The untouched-memory model stays below its own cap besides.
    """
    over = [point for point in curve_of(untouched) if point.loss <= limits.over_prediction_percent]
    budget = 100.0 - limits.target_percent
    chosen = {NO_PDM: solve([], over, budget)}
    for pdm in [] if sensitivity is None else sensitivity["curves"]:
        chosen[pdm] = solve(latency.points_of(sensitivity or {}, float(pdm)), over, budget)
    return chosen


def curve_of(untouched: Manifest | None) -> Iterable[Point]:
    """Return the measured points of an untouched-memory model; none of none."""
    for item in [] if untouched is None else untouched["curve"]:
        setting = {name: value for name, value in item.items() if name not in ("gain", "loss")}
        yield Point(item["gain"], item["loss"], setting)
