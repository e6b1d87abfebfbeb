"""Latency sensitivity: models that predict slowdown from counters, and the curves of them for Eq. 1 (Pond 4.4).

A workload is marked insensitive where its predicted slowdown is at most a threshold. LI is the percentage of workloads
that are marked, FP that of those which are marked and are slowed down by more than the PDM: both of all workloads, so
that FP adds to the OP of the untouched-memory model.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pondstack.domain.errors import BadRequest
from pondstack.prediction.balance import Point
from pondstack.prediction.counters import COUNTERS, selected
from pondstack.prediction.latency_rules import WeighedSum
from pondstack.prediction.runtime import OnnxModel
from pondstack.prediction.untouched import RARE, tail

KIND = "li"
FOREST, LIGHT, ANALYTIC = "forest", "light", "analytic"
"""Predictors: a random forest of all counters that are known, one of Memstrata's four, a weighed sum as CAMP's."""
PREDICTORS = (FOREST, LIGHT, ANALYTIC)
PDMS: tuple[int, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
"""Tolerated slowdowns in percent for which a model has a curve."""
FEW = 20
"""Workloads below which nothing is marked: they say too little."""


class LatencyModel(Protocol):
    """What predicts how much slower a guest is with all of its memory in the pool."""

    @property
    def features(self) -> Sequence[str]:
        """Return the counters that it needs, some of COUNTERS."""

    def slowdowns(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the slowdown in percent for each row of COUNTERS. Raises UnknownCounter for one that it needs."""


@dataclass(frozen=True, slots=True)
class Case:
    """One workload: predicted and measured slowdown in percent, with all of its memory in the pool."""

    predicted: float
    slowdown: float


@dataclass(frozen=True, slots=True)
class Marked:
    """What a threshold did to some workloads."""

    workloads: int
    marked: int
    wrong: int

    @property
    def li(self) -> float:
        """Return LI in percent."""
        return 100.0 * self.marked / self.workloads if self.workloads else 0.0

    @property
    def fp(self) -> float:
        """Return FP in percent."""
        return 100.0 * self.wrong / self.workloads if self.workloads else 0.0

    @property
    def fp_bound(self) -> float:
        """Return the FP in percent to expect of the next workload, as if it were marked wrongly: for few, careful."""
        return 100.0 * (self.wrong + 1) / (self.workloads + 1) if self.marked else 0.0

    def within(self, budget: float) -> bool:
        """Return whether a rule may be one that keeps to a budget of FP in percent: these would be no rare bad luck."""
        return tail(self.wrong, self.workloads, budget / 100) >= RARE


def mark(cases: Sequence[Case], threshold: float, pdm_percent: float) -> Marked:
    """Return what a threshold does."""
    marked = [case for case in cases if case.predicted <= threshold]
    return Marked(len(cases), len(marked), sum(case.slowdown > pdm_percent for case in marked))


def points(cases: Sequence[Case], pdm_percent: float) -> list[Point]:
    """Return the best points for a PDM, by loss: LI against the FP to expect; `setting` has the threshold (Eq. 1).

    Each case is a workload of its own that the model has not seen. None for fewer than FEW.
    """
    if len(cases) < FEW:
        return []
    best: list[Point] = []
    for threshold in sorted({case.predicted for case in cases}):
        found = mark(cases, threshold, pdm_percent)
        point = Point(found.li, found.fp_bound, {"threshold": threshold, "measured_fp": found.fp})
        # Thresholds ascend, so LI and FP do: of equal FP the last one is the best.
        if best and best[-1].loss == point.loss:
            best.pop()
        best.append(point)
    return best


def points_of(manifest: Mapping[str, Any], pdm_percent: float) -> list[Point]:
    """Return a stored model's curve for a PDM: that of the greatest PDM of the grid which is not above; none below."""
    known = [pdm for pdm in map(float, manifest["curves"]) if pdm <= pdm_percent]
    if not known:
        return []
    return [_point(item) for item in manifest["curves"][f"{max(known):g}"]]


def curves(cases: Sequence[Case]) -> dict[str, list[dict[str, Any]]]:
    """Return the points of each PDM as JSON types: `curves` of a manifest."""
    return {f"{pdm:g}": [point_as_json(item) for item in points(cases, pdm)] for pdm in PDMS}


def point_as_json(point: Point) -> dict[str, Any]:
    """Return a point of a curve."""
    return {"gain": point.gain, "loss": point.loss, **point.setting}


def _point(data: Mapping[str, Any]) -> Point:
    setting = {name: value for name, value in data.items() if name not in ("gain", "loss")}
    return Point(data["gain"], data["loss"], setting)


class ForestModel:
    """A random forest in ONNX: it predicts the logarithm (log1p) of the slowdown. Thread-safe."""

    def __init__(self, features: Sequence[str], blob: bytes) -> None:
        """Raises BadRequest for what is no such model."""
        self.features = tuple(features)
        self._model = OnnxModel(blob, self.features)

    def slowdowns(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the slowdown for each row; see LatencyModel."""
        return [math.expm1(value) for value in self._model.predict(selected(self.features, rows))]


def load(manifest: Mapping[str, Any], blob: bytes) -> LatencyModel:
    """Return a stored model. Raises BadRequest for one of another kind, or of counters that this release has not."""
    if manifest.get("kind") != KIND:
        raise BadRequest(f"a model of kind {manifest.get('kind')!r} does not predict slowdown; wanted {KIND!r}")
    features = manifest.get("features") or []
    strange = [str(name) for name in features if name not in COUNTERS]
    if strange or not features:
        raise BadRequest(
            f"the model takes counters that this release does not measure ({', '.join(strange) or 'none'}): "
            "pondstack-manage model train --kind li"
        )
    predictor = manifest.get("predictor")
    if predictor not in PREDICTORS:
        raise BadRequest(f"a predictor {predictor!r} is unknown here; known: {', '.join(PREDICTORS)}")
    return WeighedSum.load(blob) if predictor == ANALYTIC else ForestModel(features, blob)
