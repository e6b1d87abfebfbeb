"""A model of latency sensitivity is trained, exported and compared on workloads that it has not seen."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pondstack.domain.errors import BadRequest
from pondstack.prediction import latency, latency_forest, latency_rules, latency_trainer
from pondstack.prediction.counters import COUNTERS, UnknownCounter, row_of
from pondstack.prediction.latency import ANALYTIC, FOREST, LIGHT, Marked
from pondstack.prediction.latency_report import chosen
from pondstack.prediction.latency_trainer import Running, Settings
from pondstack.prediction.sample_generator import generate
from pondstack.prediction.samples import gather

SETTINGS = Settings(3.0, 97.0)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def quiet(_text):
    pass


@pytest.fixture(scope="module", autouse=True)
def small():
    """Fewer trees: what is tested is the way, not the figures."""
    patch = pytest.MonkeyPatch()
    patch.setitem(latency_forest.SETTINGS, "n_estimators", 20)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def data():
    return gather(generate(240, seed=5))


@pytest.fixture(scope="module")
def candidate(data):
    return latency_trainer.train(data, SETTINGS, None, NOW, quiet)


def test_who_judges_has_taught_nothing(data, monkeypatch):
    """Neither the model that is judged, nor those of the curve: each of these has not seen whom it predicts."""
    learn, judge = latency_trainer.split(data.workloads)
    assert not {item.name for item in learn} & {item.name for item in judge}
    assert len(learn) + len(judge) == len(data.workloads)
    taught, predicted = [], []

    class Spy:
        def slowdowns(self, rows):
            predicted.append({tuple(row) for row in rows})
            return [0.0] * len(rows)

    def fit(_predictor, workloads, _features):
        taught.append({tuple(item.row) for item in workloads})
        return Spy()

    monkeypatch.setattr(latency_trainer, "fit", fit)
    latency_trainer.unseen(FOREST, learn, data.features)
    assert len(taught) == latency_trainer.FOLDS
    assert all(not one & other for one, other in zip(taught, predicted, strict=True))
    assert set.union(*predicted) == {tuple(item.row) for item in learn}


def test_runs_of_a_workload_are_never_on_both_sides():
    data = gather(generate(120, seed=5, runs=2))
    learn, judge = latency_trainer.split(data.workloads)
    assert len(learn) + len(judge) == 120


def test_it_tells_sensitive_workloads_from_others(data, candidate):
    _, judge = latency_trainer.split(data.workloads)
    model = latency.load(candidate.manifest, candidate.blob)
    found = latency_trainer.cases(model, judge)
    calm = [case.predicted for case in found if case.slowdown < 1]
    slow = [case.predicted for case in found if case.slowdown > 20]
    assert max(sum(calm) / len(calm), 1) * 5 < sum(slow) / len(slow)
    known = candidate.manifest
    assert (known["kind"], known["source"], known["parity"] <= latency_trainer.PARITY) == ("li", "synthetic", True)
    assert known["chosen"]["5"]["gain"] > 10
    assert known["chosen"]["5"]["loss"] <= known["budget_percent"] == 3.0
    assert len(chosen(known)) == len(latency.PDMS)


def test_a_row_without_a_feature_is_refused(candidate):
    model = latency.load(candidate.manifest, candidate.blob)
    assert list(model.features) == list(COUNTERS)
    with pytest.raises(UnknownCounter, match=f"row 0: {COUNTERS[-1]} not measured"):
        model.slowdowns([row_of(dict.fromkeys(COUNTERS[:-1], 1.0))])


def test_it_does_not_beat_itself(data, candidate):
    running = Running.load(candidate.manifest, candidate.blob)
    again = latency_trainer.train(data, SETTINGS, running, NOW, quiet)
    assert again.blob == candidate.blob
    assert "running" in again.manifest["verdict"]["not_better_than"]


def test_counters_that_tell_nothing_beat_nothing(data):
    """Rows dealt out anew: what is learnt is chance, and must not be promoted."""
    rows = [item.row for item in data.workloads]
    random.Random(1).shuffle(rows)
    dealt = [replace(item, row=row) for item, row in zip(data.workloads, rows, strict=True)]
    got = latency_trainer.train(replace(data, workloads=dealt), SETTINGS, None, NOW, quiet)
    assert not got.manifest["verdict"]["better"]


@pytest.mark.parametrize(
    ("mine", "other", "lost"),
    [
        ((40, 0), (30, 0), []),
        ((30, 0), (30, 0), ["single counter"]),
        ((60, 20), (30, 0), ["budget", "single counter"]),
    ],
)
def test_the_budget_comes_first_and_the_insensitive_second(mine, other, lost):
    compared = {"candidate": Marked(100, *mine), "single counter": Marked(100, *other)}
    got = latency_trainer.verdict(compared, 2.0, "dram_bound_percent")
    assert (got["not_better_than"], got["better"]) == (lost, not lost)
    assert "single counter (dram_bound_percent) LI 30.0 %" in got["text"]


@pytest.mark.parametrize(
    ("predictor", "features"),
    [(LIGHT, latency_trainer.LIGHT_FEATURES), (ANALYTIC, latency_rules.COMPONENTS)],
)
def test_the_other_predictors_have_the_same_interface(data, predictor, features):
    got = latency_trainer.train(data, Settings(3.0, 97.0, predictor), None, NOW, quiet)
    model = latency.load(got.manifest, got.blob)
    assert list(model.features) == got.manifest["features"] == list(features)
    found = latency_trainer.cases(model, data.workloads)
    assert got.manifest["parity"] <= latency_trainer.PARITY
    slow = sum(case.predicted for case in found if case.slowdown > 20) / sum(case.slowdown > 20 for case in found)
    calm = sum(case.predicted for case in found if case.slowdown < 1) / sum(case.slowdown < 1 for case in found)
    assert calm < slow


def test_weights_are_found_and_never_negative(data):
    made = latency_rules.WeighedSum({"demand": 0.8, "demand by parallelism": 0.0, "stores": 0.3, "traffic": 0.0})
    rows = [item.row for item in data.workloads]
    again = latency_rules.fit(rows, made.slowdowns(rows))
    assert again.slowdowns(rows) == pytest.approx(made.slowdowns(rows), abs=0.5)
    falling = latency_rules.fit(rows, [-value for value in made.slowdowns(rows)])
    assert set(falling.slowdowns(rows)) == {0.0}
    with pytest.raises(BadRequest, match="other components"):
        latency_rules.WeighedSum.load(b'{"demand": 1}')
    with pytest.raises(BadRequest, match="no weights"):
        latency_rules.WeighedSum.load(b"x")


def test_what_cannot_be_trained_is_told(data):
    few = replace(data, workloads=data.workloads[:50])
    with pytest.raises(BadRequest, match="too few workloads"):
        latency_trainer.train(few, SETTINGS, None, NOW, quiet)
    with pytest.raises(BadRequest, match="the samples lack l2_misses_per_kilo"):
        latency_trainer.needed(LIGHT, [name for name in COUNTERS if name != "l2_misses_per_kilo"])
    with pytest.raises(BadRequest, match="'oracle' is unknown"):
        latency_trainer.needed("oracle", COUNTERS)


def test_an_export_that_differs_is_refused(candidate, data):
    model = latency.load(candidate.manifest, candidate.blob)

    class Other:
        features = model.features

        def slowdowns(self, rows):
            return [value + 0.1 for value in model.slowdowns(rows)]

    with pytest.raises(BadRequest, match="differs"):
        latency_trainer.check_parity(model, Other(), [data.workloads[0].row])
