"""Training of the latency-sensitivity model: workloads to learn from, and others, never seen, to judge (Pond 6.4.1).

Workloads are told apart by a hash of their names, so that those that judge are the same in each training and no model
that runs has learnt from them either. The curves come from workloads that the forest at hand has not seen: five folds.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from pondstack.domain.errors import BadRequest
from pondstack.domain.telemetry import Metric
from pondstack.prediction import latency, latency_forest, latency_rules
from pondstack.prediction.balance import Point, solve
from pondstack.prediction.latency import (
    ANALYTIC,
    FOREST,
    KIND,
    LIGHT,
    PDMS,
    PREDICTORS,
    Case,
    LatencyModel,
    Marked,
    mark,
    points,
)
from pondstack.prediction.samples import SampleSet, Workload
from pondstack.prediction.trainer import Candidate, Score, largest_difference, not_better_than

FOLDS = 5
JUDGES = 3
"""One of so many workloads judges."""
LEAST_LEARN, LEAST_JUDGE = 40, 20
JUDGED_PDM = 5
"""Tolerated slowdown in percent at which models are compared: what a flavor without pond:pdm tolerates."""
PARITY = 1e-2
"""Most that the exported model may differ from the trained one, in percent of slowdown."""
LIGHT_FEATURES: tuple[str, ...] = tuple(
    map(
        str,
        (
            Metric.L3_MISS_LATENCY_CYCLES,
            Metric.L2_MISSES_PER_KILO,
            Metric.DTLB_WALKS_PER_KILO,
            Metric.READ_MIB_PER_CPU_SECOND,
        ),
    )
)
"""What Memstrata tells outliers by (OSDI'24): four counters of a core."""


class Trained(LatencyModel, Protocol):
    """A model that can be stored."""

    def blob(self) -> bytes:
        """Return what pondstack.prediction.latency.load takes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator allows, in percent, and which predictor is wanted."""

    false_positive_percent: float
    target_percent: float
    predictor: str = FOREST

    @property
    def budget(self) -> float:
        """Return the most FP in percent."""
        return min(self.false_positive_percent, 100.0 - self.target_percent)


@dataclass(frozen=True, slots=True)
class Running:
    """A model that serves, or is to be beaten."""

    model: LatencyModel
    manifest: dict[str, Any]

    @classmethod
    def load(cls, manifest: dict[str, Any], blob: bytes) -> "Running":
        """Return a stored model; raises BadRequest for one that this release cannot run."""
        return cls(latency.load(manifest, blob), manifest)


def bucket(workload: str, buckets: int, salt: str) -> int:
    """Return which of some buckets a workload belongs to, always the same."""
    return int.from_bytes(hashlib.sha256(f"{salt}/{workload}".encode()).digest()[:8], "big") % buckets


def split(workloads: Sequence[Workload]) -> tuple[list[Workload], list[Workload]]:
    """Return those to learn from and those to judge. Raises BadRequest where they are too few."""
    judge = [item for item in workloads if bucket(item.name, JUDGES, "judge") == 0]
    learn = [item for item in workloads if bucket(item.name, JUDGES, "judge") != 0]
    if len(learn) < LEAST_LEARN or len(judge) < LEAST_JUDGE:
        raise BadRequest(
            f"too few workloads: {len(learn)} to learn from and {len(judge)} to judge; at least {LEAST_LEARN} and "
            f"{LEAST_JUDGE} are needed (a third of them, by name, judges)"
        )
    return learn, judge


def needed(predictor: str, features: Sequence[str]) -> Sequence[str]:
    """Return the counters that a predictor takes of those that are known. Raises BadRequest where some are lacking."""
    if predictor not in PREDICTORS:
        raise BadRequest(f"a predictor {predictor!r} is unknown; known: {', '.join(PREDICTORS)}")
    wanted = {FOREST: features, LIGHT: LIGHT_FEATURES, ANALYTIC: latency_rules.COMPONENTS}[predictor]
    lacking = [name for name in wanted if name not in features]
    if lacking:
        raise BadRequest(f"the samples lack {', '.join(lacking)}, which this predictor needs; try --predictor {FOREST}")
    return wanted


def fit(predictor: str, workloads: Sequence[Workload], features: Sequence[str]) -> Trained:
    """Return a trained predictor; raises as needed()."""
    rows = [item.row for item in workloads]
    slowdowns = [item.slowdown for item in workloads]
    wanted = needed(predictor, features)
    if predictor == ANALYTIC:
        return latency_rules.fit(rows, slowdowns)
    return latency_forest.train(rows, slowdowns, wanted)


def cases(model: LatencyModel, workloads: Sequence[Workload]) -> list[Case]:
    """Return what a model predicts, beside what was measured."""
    found = model.slowdowns([item.row for item in workloads])
    return [Case(predicted, item.slowdown) for predicted, item in zip(found, workloads, strict=True)]


def unseen(predictor: str, workloads: Sequence[Workload], features: Sequence[str]) -> list[Case]:
    """Return what models predict for workloads that each has not seen, fold by fold."""
    found: list[Case] = []
    for fold in range(FOLDS):
        others = [item for item in workloads if bucket(item.name, FOLDS, "fold") != fold]
        mine = [item for item in workloads if bucket(item.name, FOLDS, "fold") == fold]
        found += cases(fit(predictor, others, features), mine)
    return found


def chosen(curve: Sequence[Point], budget: float) -> Point:
    """Return the point with the most LI within a budget of FP."""
    return solve(curve, [], budget).insensitive


def best_counter(workloads: Sequence[Workload], features: Sequence[str], budget: float) -> tuple[str, Point]:
    """Return the single counter, and its threshold, that marks the most workloads within the budget."""
    found = []
    for name in features:
        curve = points(cases(latency_rules.SingleCounter(name), workloads), JUDGED_PDM)
        found.append((name, chosen(curve, budget)))
    return max(found, key=lambda item: item[1].gain)


def judged(model: LatencyModel, point: Point, workloads: Sequence[Workload]) -> Marked:
    """Return what a model does at a point's threshold; at none it marks nothing."""
    if "threshold" not in point.setting:
        return Marked(len(workloads), 0, 0)
    return mark(cases(model, workloads), point.setting["threshold"], JUDGED_PDM)


def train(
    data: SampleSet,
    settings: Settings,
    running: Running | None,
    now: datetime,
    say: Callable[[str], object],
) -> Candidate:
    """Train, export, compare; `running` is the model to beat. Repeatable. Raises BadRequest, ImportError."""
    learn, judge = split(data.workloads)
    say("fitting")
    trained = fit(settings.predictor, learn, data.features)
    found = unseen(settings.predictor, learn, data.features)
    say("exporting")
    about = {"kind": KIND, "predictor": settings.predictor, "features": list(trained.features)}
    blob = trained.blob()
    exported = latency.load(about, blob)
    parity = check_parity(trained, exported, [item.row for item in data.workloads])
    say("judging")
    curves = latency.curves(found)
    mine = {pdm: chosen(latency.points_of({"curves": curves}, float(pdm)), settings.budget) for pdm in PDMS}
    counter, point = best_counter(learn, data.features, settings.budget)
    compared = {
        "candidate": judged(exported, mine[JUDGED_PDM], judge),
        "single counter": judged(latency_rules.SingleCounter(counter), point, judge),
    }
    if running is not None:
        theirs = chosen(latency.points_of(running.manifest, JUDGED_PDM), settings.budget)
        compared["running"] = judged(running.model, theirs, judge)
    manifest = {
        **about,
        "source": max(data.sources),
        "opset": latency_forest.OPSET,
        "parity": parity,
        "data": {
            "sha256": data.sha256,
            "samples": data.sources,
            "workloads": [len(learn), len(judge)],
            "left_out": data.left_out,
            "window": list(data.window),
            "cpus": list(data.cpus),
        },
        "false_positive_percent": settings.false_positive_percent,
        "target_percent": settings.target_percent,
        "budget_percent": settings.budget,
        "curves": curves,
        "chosen": {f"{pdm:g}": latency.point_as_json(item) for pdm, item in mine.items()},
        "judged_pdm": JUDGED_PDM,
        "best_counter": counter,
        "newest": {name: {"li": item.li, "fp": item.fp} for name, item in compared.items()},
        "trained_at": now.isoformat(),
        "verdict": verdict(compared, settings.budget, counter),
    }
    return Candidate(blob, manifest)


def check_parity(trained: LatencyModel, exported: LatencyModel, rows: Sequence[Sequence[float]]) -> float:
    """Return the largest difference of two models. Raises BadRequest where it is more than PARITY."""
    return largest_difference(trained.slowdowns(rows), exported.slowdowns(rows), PARITY)


def verdict(compared: Mapping[str, Marked], budget: float, counter: str) -> dict[str, Any]:
    """Return whether the candidate is better than each other rule on workloads that it has not seen, and why not."""
    mine = compared["candidate"]
    lost = not_better_than({name: Score(item.within(budget), item.li, item.fp) for name, item in compared.items()})
    told = ", ".join(
        f"{name}{f' ({counter})' if name == 'single counter' else ''} LI {item.li:.1f} % at FP {item.fp:.1f} %"
        for name, item in compared.items()
    )
    text = (
        f"on {mine.workloads} workloads that it has not seen, at a PDM of {JUDGED_PDM} %, budget {budget:g} %: {told}"
    )
    return {"better": not lost, "not_better_than": lost, "text": text}
