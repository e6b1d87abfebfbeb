"""Training of the untouched-memory model on three parts, forward in time: to learn, to set margins, to judge."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from pondstack.domain.errors import BadRequest
from pondstack.prediction import forest
from pondstack.prediction.balance import Balance, Point, solve
from pondstack.prediction.examples import DataSet, Example
from pondstack.prediction.features import FEATURES, Vocabulary, ceiling, spread, vector
from pondstack.prediction.runtime import OnnxModel
from pondstack.prediction.untouched import SPREAD, Case, Margins, Result, curve, result

KIND = "um"
QUANTILE = 0.25
"""What the forest predicts; the budget decides how much is taken off it. Lower ones rest on too few examples."""
LEARN, CALIBRATE = 0.6, 0.8
"""Shares of the examples, by start, before which the first and the second part end."""
LEAST_LEARN, LEAST_OTHER = 60, 20
PARITY = 1e-4
"""Most that the exported model may differ from the trained one, as a share of an instance's memory."""


class ShareModel(Protocol):
    """What predicts the untouched share of rows of features."""

    def predict(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the share for each row."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator allows; percentages, and the size of a slice."""

    over_prediction_percent: float
    target_percent: float
    static_percent: int
    slice_mib: int

    @property
    def budget(self) -> float:
        """Return the most OP in percent."""
        return min(self.over_prediction_percent, 100.0 - self.target_percent)


@dataclass(frozen=True, slots=True)
class Running:
    """A model that serves, or is to be beaten."""

    model: ShareModel
    manifest: dict[str, Any]

    @classmethod
    def load(cls, manifest: dict[str, Any], blob: bytes) -> "Running":
        """Return a stored model; raises BadRequest for one of other features than this release makes."""
        if manifest["features"] != list(FEATURES):
            raise BadRequest("the model takes other features than this release makes: pondstack-manage model train")
        return cls(OnnxModel(blob, FEATURES), manifest)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trained model: an ONNX blob, and all that is known of it as JSON types."""

    blob: bytes
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """Examples forward in time: what one part learnt was known before the next one starts."""

    learn: Sequence[Example]
    calibrate: Sequence[Example]
    newest: Sequence[Example]


def split(examples: Sequence[Example]) -> Parts:
    """Return the parts. Raises BadRequest where one is too small to say anything."""
    if not examples:
        raise BadRequest("no instance was observed long enough to learn from: wait for telemetry, or take another file")
    first = examples[int(len(examples) * LEARN)].as_of
    second = examples[int(len(examples) * CALIBRATE)].as_of
    parts = Parts(
        [known for item in examples if item.as_of < first and (known := item.known_at(first))],
        [known for item in examples if item.as_of >= first and (known := item.known_at(second))],
        [item for item in examples if item.as_of >= second],
    )
    sizes = (len(parts.learn), len(parts.calibrate), len(parts.newest))
    if sizes[0] < LEAST_LEARN or min(sizes[1:]) < LEAST_OTHER:
        raise BadRequest(
            f"too little history: {sizes[0]} instances to learn from, {sizes[1]} to set margins, {sizes[2]} to judge; "
            f"at least {LEAST_LEARN}, {LEAST_OTHER} and {LEAST_OTHER} are needed, each part begun after the one before "
            "ended"
        )
    return parts


def rows(examples: Iterable[Example], words: Vocabulary) -> list[list[float]]:
    """Return the features of examples."""
    return [vector(item.request, item.history, item.as_of, words) for item in examples]


def cases(model: ShareModel, examples: Sequence[Example], words: Vocabulary) -> list[Case]:
    """Return what a model predicts for examples, beside what happened."""
    found = shares(model, rows(examples, words))
    return [
        Case(share, item.request.memory_mib, item.untouched_mib, bool(item.history), spread(item.history, SPREAD))
        for share, item in zip(found, examples, strict=True)
    ]


def shares(model: ShareModel, rows: Sequence[Sequence[float]]) -> list[float]:
    """Return what a model predicts for rows of features, and no more than the project's own records allow."""
    return [min(share, ceiling(row)) for share, row in zip(model.predict(rows), rows, strict=True)]


def train(
    data: DataSet, settings: Settings, running: Running | None, now: datetime, say: Callable[[str], None]
) -> Candidate:
    """Train, choose margins within the budget, export, compare. Raises BadRequest, ImportError."""
    parts = split(data.examples)
    words = Vocabulary.of(item.request for item in parts.learn)
    say("fitting")
    learn, labels = rows(parts.learn, words), [item.share for item in parts.learn]
    trained = forest.train(learn, labels, QUANTILE)
    points = curve(cases(trained, parts.calibrate, words), settings.slice_mib)
    chosen = solve([], points, settings.budget)
    say("exporting")
    blob = trained.to_onnx()
    exported = OnnxModel(blob, FEATURES)
    parity = check_parity(trained, exported, rows(data.examples, words))
    margins = margins_of(chosen.untouched)
    say("judging")
    compared = compare(exported, words, margins, parts.newest, settings, running)
    manifest = {
        "kind": KIND,
        "features": list(FEATURES),
        "words": {"image_os": list(words.image_os), "zone": list(words.zone)},
        "quantile": QUANTILE,
        "margins": {"known": margins.known, "cold": margins.cold},
        "slice_mib": settings.slice_mib,
        "opset": forest.OPSET,
        "parity": parity,
        "data": {
            "sha256": data.sha256,
            "lifetimes": dict(data.sources),
            "examples": [len(parts.learn), len(parts.calibrate), len(parts.newest)],
            "window": [data.examples[0].as_of.isoformat(), data.examples[-1].as_of.isoformat()],
            "judged_since": parts.newest[0].as_of.isoformat(),
        },
        "target_percent": settings.target_percent,
        "budget_percent": settings.budget,
        "curve": [point_as_json(point) for point in points],
        "chosen": balance_as_json(chosen),
        "newest": {name: {"um": item.um, "op": item.op} for name, item in compared.items()},
        "trained_at": now.isoformat(),
    }
    return Candidate(blob, {**manifest, "verdict": verdict(compared, settings.budget)})


def check_parity(trained: ShareModel, exported: ShareModel, rows: Sequence[Sequence[float]]) -> float:
    """Return the largest difference of two models. Raises BadRequest where it is more than PARITY."""
    return largest_difference(trained.predict(rows), exported.predict(rows), PARITY)


def largest_difference(trained: Sequence[float], exported: Sequence[float], most: float) -> float:
    """Return the largest difference of what two models predict. Raises BadRequest where it is more than `most`."""
    worst = max((abs(one - other) for one, other in zip(trained, exported, strict=True)), default=0.0)
    if not worst <= most:
        raise BadRequest(f"the exported model differs from the trained one by {worst}, more than {most}: not usable")
    return worst


def compare(
    model: ShareModel,
    words: Vocabulary,
    margins: Margins,
    newest: Sequence[Example],
    settings: Settings,
    running: Running | None,
) -> dict[str, Result]:
    """Return what the candidate, the static share and the running model do to the newest examples."""
    static = [
        Case(settings.static_percent / 100, item.request.memory_mib, item.untouched_mib, bool(item.history), SPREAD)
        for item in newest
    ]
    found = {
        "candidate": result(cases(model, newest, words), margins, settings.slice_mib),
        "static": result(static, Margins(0.0, 0.0), settings.slice_mib),
    }
    if running is not None:
        found["running"] = replay(running, newest, settings.slice_mib)
    return found


def replay(running: Running, examples: Sequence[Example], slice_mib: int) -> Result:
    """Return what a model does to examples, by its own words and margins."""
    known = running.manifest
    words = Vocabulary(**{name: tuple(values) for name, values in known["words"].items()})
    return result(cases(running.model, examples, words), Margins(**known["margins"]), slice_mib)


def verdict(compared: dict[str, Result], budget: float) -> dict[str, Any]:
    """Return whether the candidate is better than each other rule, and why not."""
    lost = not_better_than({name: Score(item.within(budget), item.um, item.op) for name, item in compared.items()})
    told = ", ".join(f"{name} UM {item.um:.1f} % at OP {item.op:.1f} %" for name, item in compared.items())
    return {"better": not lost, "not_better_than": lost, "text": f"on the newest data, budget {budget:g} %: {told}"}


class Score(NamedTuple):
    """What a rule did to those who judge: whether it may keep to the budget, and its gain and loss in percent."""

    within: bool
    gain: float
    loss: float

    @property
    def worth(self) -> tuple[bool, float]:
        """Return what is greater for a better rule.

        Who keeps to the budget beats who does not; of two that do the greater gain counts, of two that do not the
        smaller loss.
        """
        return self.within, self.gain if self.within else -self.loss


def not_better_than(scores: Mapping[str, Score]) -> list[str]:
    """Return the rules that the candidate is not better than, and first "budget" where it does not keep to that."""
    mine = scores["candidate"]
    lost = [name for name, item in scores.items() if name != "candidate" and item.worth >= mine.worth]
    return lost if mine.within else ["budget", *lost]


def margins_of(point: Point) -> Margins:
    """Return the margins that a point of the curve stands for; of none, such as leave nothing to the pool."""
    return Margins(point.setting.get("known", 2.0), point.setting.get("cold", 2.0))


def point_as_json(point: Point) -> dict[str, Any]:
    """Return a point of a curve."""
    return {"gain": point.gain, "loss": point.loss, **point.setting}


def balance_as_json(chosen: Balance) -> dict[str, Any]:
    """Return what Eq. 1 chose."""
    return {
        "insensitive": point_as_json(chosen.insensitive),
        "untouched": point_as_json(chosen.untouched),
        "pool_percent": chosen.gain,
        "mispredictions_percent": chosen.loss,
    }
