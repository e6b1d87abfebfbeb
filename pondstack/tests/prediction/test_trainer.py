"""A model is trained, exported, compared and turned into a table; each step refuses what it cannot do well."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pondstack.domain.allowance import Allowance
from pondstack.domain.errors import BadRequest
from pondstack.domain.sizing import Features, Policy, PondSpecs, StaticShare
from pondstack.prediction import table, trainer
from pondstack.prediction.choice import Limits, choose
from pondstack.prediction.examples import LifetimeFile, examples, read
from pondstack.prediction.features import FEATURES, Request
from pondstack.prediction.flow import Flow
from pondstack.prediction.former import describe_formerly
from pondstack.prediction.runtime import OnnxModel
from pondstack.prediction.untouched import Result
from pondstack.prediction.untouched_table import UntouchedTable
from tests.fixtures import lifetimes

SETTINGS = trainer.Settings(4.0, 98.0, 15, 1024)
ITEMS = lifetimes.generate()
NOW = lifetimes.end(ITEMS)


class Source:
    def __init__(self, items):
        self._items = items

    def lifetimes(self, _since, _until):
        return self._items


def quiet(_text):
    pass


@pytest.fixture(scope="module")
def data():
    return read(Source(ITEMS), lifetimes.BEGIN, NOW, 0.5)


@pytest.fixture(scope="module")
def candidate(data):
    return trainer.train(data, SETTINGS, None, NOW, quiet)


def test_parts_go_forward_in_time(data):
    parts = trainer.split(data.examples)
    assert max(item.ended_at for item in parts.learn) <= min(item.as_of for item in parts.calibrate)
    assert max(item.ended_at for item in parts.calibrate) <= min(item.as_of for item in parts.newest)
    assert min(map(len, (parts.learn, parts.calibrate, parts.newest))) > 200


def test_a_cloud_whose_instances_live_for_weeks_learns_from_them():
    """None has ended: what was untouched by the end of each week teaches, and each part knows no more than that."""
    weeks = [lifetimes.BEGIN + timedelta(weeks=number) for number in range(1, 9)]
    long = [
        replace(item, deleted_at=None, marks=tuple((at, item.untouched_mib) for at in weeks if at > item.created_at))
        for item in ITEMS
    ]
    with pytest.raises(BadRequest, match="too little history"):
        trainer.split(examples([replace(item, marks=()) for item in long], NOW, 0.5))
    parts = trainer.split(examples(long, NOW, 0.5))
    assert max(item.ended_at for item in parts.learn) <= min(item.as_of for item in parts.calibrate)
    assert max(item.ended_at for item in parts.calibrate) <= min(item.as_of for item in parts.newest)
    assert any(item.history for item in parts.learn)


def test_marks_survive_the_file(tmp_path):
    item = replace(ITEMS[0], marks=((lifetimes.BEGIN + timedelta(days=9), 77),))
    path = lifetimes.write(tmp_path / "lifetimes.jsonl", [item])
    assert list(LifetimeFile(path).lifetimes(lifetimes.BEGIN, NOW)) == [item]


def test_too_little_history_is_told():
    few = examples(ITEMS[:100], NOW, 0.5)
    with pytest.raises(BadRequest, match="60, 20 and 20 are needed"):
        trainer.split(few)
    with pytest.raises(BadRequest, match="no instance"):
        trainer.split([])


def test_it_beats_the_static_share_within_the_budget(candidate):
    newest, known = candidate.manifest["newest"], candidate.manifest
    assert known["verdict"]["better"], known["verdict"]
    assert newest["candidate"]["um"] > 2 * newest["static"]["um"]
    assert known["chosen"]["mispredictions_percent"] <= known["budget_percent"] == 2.0
    assert known["parity"] <= trainer.PARITY


def test_it_does_not_beat_itself(data, candidate):
    running = trainer.Running.load(candidate.manifest, candidate.blob)
    again = trainer.train(data, SETTINGS, running, NOW, quiet)
    assert again.blob == candidate.blob
    assert again.manifest["verdict"]["not_better_than"] == ["running"]


def test_it_is_no_better_where_the_newest_data_are_others():
    """Projects that touch much more than they did: the candidate breaks the budget and must not be promoted."""
    items = lifetimes.generate(shift=-0.4)
    half = len(items) * 4 // 5
    data = read(Source([*ITEMS[:half], *items[half:]]), lifetimes.BEGIN, NOW, 0.5)
    verdict = trainer.train(data, SETTINGS, None, NOW, quiet).manifest["verdict"]
    assert "budget" in verdict["not_better_than"]


@pytest.mark.parametrize(
    ("candidate_", "other", "better"),
    [((300, 0), (200, 0), True), ((200, 0), (200, 0), False), ((300, 30), (100, 0), False), ((50, 0), (300, 30), True)],
)
def test_the_budget_comes_first_and_the_memory_second(candidate_, other, better):
    rules = {
        "candidate": Result(100, 1000, *candidate_),
        "static": Result(100, 1000, *other),
    }
    assert trainer.verdict(rules, 2.0)["better"] is better


def test_an_export_that_differs_is_refused():
    class Other:
        def predict(self, rows):
            return [0.5 + 0.01 * len(rows)] * len(rows)

    class Same:
        def predict(self, rows):
            return [0.5] * len(rows)

    with pytest.raises(BadRequest, match="differs"):
        trainer.check_parity(Same(), Other(), [[1.0]])


def test_a_model_of_other_features_is_refused(candidate):
    with pytest.raises(BadRequest, match="train again"):
        OnnxModel(candidate.blob, FEATURES[:-1])
    with pytest.raises(BadRequest, match="no ONNX model"):
        OnnxModel(candidate.blob[:100], FEATURES)
    renamed = {**candidate.manifest, "features": [*FEATURES[:-1], "another"]}
    with pytest.raises(BadRequest, match="other features"):
        trainer.Running.load(renamed, candidate.blob)


@pytest.fixture(scope="module")
def made(data, candidate):
    model = OnnxModel(candidate.blob, FEATURES)
    requests = [item.request for item in data.examples]
    return table.untouched(model, "um-1", candidate.manifest, data.history, requests, NOW)


def flow(part, manifest, otherwise=None):
    chosen = choose(manifest, None, Limits(98.0, 4.0, 2.0))
    about = table.join(part, None, chosen, percent=15, min_local_percent=10)
    return Flow(about, otherwise or StaticShare(int(about["percent"])))


def split_of(part, manifest, project, slice_mib=1024, **specs):
    """Return what a project's instance of its first size gets."""
    memory, vcpus = map(int, next(iter(part["projects"][project])).split("/"))
    features = Features("i", memory, vcpus, project, specs=PondSpecs(Policy.AUTO, **specs))
    return flow(part, manifest).predict(features, slice_mib), memory


def test_the_table_gives_each_project_its_own(made, data, candidate):
    """The project that leaves most of its memory gets more of it from the pool than the one that leaves least."""
    shares = {}
    for item in data.examples:
        shares.setdefault(item.request.project_id, []).append(item.share)
    order = sorted(shares, key=lambda project: min(shares[project]))
    least, most = (split_of(made, candidate.manifest, project)[0] for project in (order[0], order[-1]))
    assert "instances of its project" in least.reason
    assert least.pool_mib == 0
    assert most.pool_mib > most.local_mib


def test_a_table_predicts_within_flavor_and_cap(made, candidate):
    project = max((name for name in made["projects"] if name), key=lambda name: max(made["projects"][name].values()))
    got, memory = split_of(made, candidate.manifest, project)
    assert (got.source, got.model_version) == ("untouched", "um-1")
    assert got.reason.startswith("model um-1: ")
    assert 0.9 < got.confidence < 1.0
    assert got.inputs["history"] > 0
    capped, _ = split_of(made, candidate.manifest, project, max_pool_percent=20)
    assert 0 < capped.pool_mib <= memory * 0.2
    assert split_of(made, candidate.manifest, project, 2048)[0].pool_mib % 2048 == 0


def test_a_project_without_history_is_decided_by_size_and_an_unknown_size_statically(made, candidate):
    predictor = flow(made, candidate.manifest)
    cold = predictor.predict(Features("i", 8192, 4, "new"), 1024)
    assert "no history" in cold.reason
    assert cold.pool_mib == 0  # too few such instances in the examples to bet on
    assert predictor.predict(Features("i", 12288, 4, "new"), 1024).source == "static"


def test_a_former_scheduler_decides_the_same_for_the_default_pdm(made, candidate):
    about = table.join(
        made, None, choose(candidate.manifest, None, Limits(98.0, 4.0, 2.0)), percent=15, min_local_percent=10
    )
    told = describe_formerly(about, None, 1024)
    old, new = UntouchedTable(told, StaticShare()), Flow(about, StaticShare())
    for project, sizes in made["projects"].items():
        for size in sizes:
            memory, vcpus = map(int, size.split("/"))
            features = Features("i", memory, vcpus, project, specs=PondSpecs(Policy.AUTO))
            one, other = old.predict(features, 1024), new.predict(features, 1024)
            assert (one.pool_mib, one.source, one.reason) == (other.pool_mib, other.source, other.reason)
    assert describe_formerly(about, Allowance(0.0, {}), 1024) == {"kind": "static", "percent": 0}


def test_a_worse_record_makes_the_next_one_smaller(data, candidate):
    """The next instance after a misprediction is predicted better."""
    model = OnnxModel(candidate.blob, FEATURES)
    most = max(data.history.projects(), key=lambda name: min(item.share for item in data.history.before(name, NOW)))
    request = next(item.request for item in data.examples if item.request.project_id == most)
    bad = replace(ITEMS[0], project_id=most, created_at=NOW - timedelta(hours=3), deleted_at=NOW, untouched_mib=0)
    after = read(Source([*ITEMS, bad]), lifetimes.BEGIN, NOW, 0.5)
    sizes = []
    for history in (data.history, after.history):
        got = table.untouched(model, "v", candidate.manifest, history, [request], NOW)
        sizes.append(got["projects"][most][f"{request.memory_mib}/{request.vcpus}"][0])
    assert sizes[1] < sizes[0]


def test_unknown_words_do_not_matter(candidate, data):
    model = OnnxModel(candidate.blob, FEATURES)
    got = table.untouched(model, "v", candidate.manifest, data.history, [Request("x", 8192, 4, image_os="?")], NOW)
    assert list(got["projects"]) == [""]
