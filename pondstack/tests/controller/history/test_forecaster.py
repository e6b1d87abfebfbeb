"""The leader describes the predictor in force: the serving models' table, or the static share, said loudly."""

import logging
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from sqlalchemy import text, update

from pondstack.cmd import model_text, status
from pondstack.controller.history.forecaster import Forecaster
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.models import ModelRow
from pondstack.db.store import registry
from pondstack.domain.errors import NotLeader
from pondstack.domain.history import Decided, GuestCounters
from pondstack.domain.sizing import Features, Policy, PondSpecs, Split
from pondstack.domain.telemetry import Metric, Source
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction import latency, runtime, trainer
from pondstack.prediction.counters import COUNTERS
from pondstack.prediction.examples import read
from pondstack.prediction.serving import make_predictor
from tests.fixtures import lifetimes

ITEMS = lifetimes.generate(projects=12, weeks=6)
SHIFT = datetime.now(UTC) - lifetimes.end(ITEMS)
RECENT = [replace(item, created_at=item.created_at + SHIFT, deleted_at=item.deleted_at + SHIFT) for item in ITEMS]
"""The same, ended just now."""


DRAM = str(Metric.DRAM_BOUND_PERCENT)
LATENCY = {
    "kind": "li",
    "source": "measured",
    "features": [DRAM],
    "curves": {"5": [{"gain": 40.0, "loss": 0.5, "threshold": 4.0, "measured_fp": 0.1}]},
}


class HistoryOf:
    def __init__(self, items):
        self.items, self.guests, self.outcomes = items, [], []

    def lifetimes(self, *_chosen):
        return self.items

    def counters(self, _since):
        return self.guests

    def decided(self, _since, _min_coverage):
        return self.outcomes


class FromDram:
    """In place of a trained model of latency sensitivity."""

    features = (DRAM,)

    def slowdowns(self, rows):
        return [row[COUNTERS.index(DRAM)] for row in rows]


@pytest.fixture(scope="module")
def candidate():
    data = read(HistoryOf(ITEMS), lifetimes.BEGIN, lifetimes.end(ITEMS), 0.5)
    settings = trainer.Settings(4.0, 98.0, 15, 1024)
    return trainer.train(data, settings, None, lifetimes.end(ITEMS), lambda _text: None)


@pytest.fixture
def resources(tmp_path):
    database = Database.from_url(f"sqlite:///{tmp_path}/ledger.db")
    migration.sync(database)
    conf = SimpleNamespace(
        model=SimpleNamespace(
            refresh_seconds=300,
            target_percent=98.0,
            over_prediction_percent=4.0,
            false_positive_percent=2.0,
            min_local_percent=10,
            proving_seconds=3600,
            trial_instances=10,
        ),
        sizing=SimpleNamespace(static_pool_percent=15),
        prediction=SimpleNamespace(min_coverage=0.5),
    )
    yield SimpleNamespace(database=database, conf=conf, reader=SimpleNamespace(history=HistoryOf(RECENT)))
    database.dispose()


def make(resources):
    return Forecaster(resources, lambda _session: None)


def store_latency(resources, monkeypatch):
    monkeypatch.setattr(latency, "load", lambda _manifest, _blob: FromDram())

    def work(session):
        registry.add(session, "li-1", LATENCY, b"no model")
        registry.promote(session, "li-1")

    resources.database.write(work)


def guests(project, dram, count=5):
    return [GuestCounters(f"{project}{number}", project, 8192, 4, {DRAM: dram}) for number in range(count)]


def store(resources, candidate):
    def work(session):
        registry.add(session, "um-1", candidate.manifest, candidate.blob)
        registry.promote(session, "um-1")

    resources.database.write(work)


def split(forecaster, project, memory_mib, vcpus):
    features = Features("i", memory_mib, vcpus, project, specs=PondSpecs(Policy.AUTO))
    return make_predictor(forecaster.describe()).predict(features, 1024)


def test_a_project_with_history_gets_another_split_than_one_without(resources, candidate):
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    by_project = {item.project_id: (item.memory_mib, item.vcpus) for item in RECENT}
    splits = {project: split(forecaster, project, *size) for project, size in by_project.items()}
    best = max(splits, key=lambda project: splits[project].pool_mib / by_project[project][0])
    cold = split(forecaster, "new", *by_project[best])
    assert splits[best].pool_mib > cold.pool_mib
    assert splits[best].reason.startswith("model um-1: ")
    assert "no history" in cold.reason
    assert split(forecaster, "new", 12288, 3).source == "static"


def test_no_model_and_no_extra_are_said_loudly_and_once(resources, candidate, caplog, monkeypatch):
    forecaster = make(resources)
    with caplog.at_level(logging.WARNING):
        forecaster.refresh()
        forecaster.refresh()
    assert forecaster.describe() == {"kind": "static", "percent": 15}
    assert caplog.text.count("static share") == 1
    assert "no model runs" in caplog.text
    store(resources, candidate)
    monkeypatch.setattr(runtime, "missing", lambda: ["onnxruntime"])
    forecaster.refresh()
    assert forecaster.describe()["kind"] == "static"
    assert "onnxruntime is not installed" in caplog.text


def test_made_up_labels_do_not_decide_about_real_guests(resources, candidate):
    resources.reader.history.items = [replace(item, source=Source.SYNTHETIC) for item in RECENT]
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    assert forecaster.describe()["untouched"]["projects"] == {}


def test_a_model_that_is_rolled_back_decides_no_more(resources, candidate):
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    assert forecaster.describe()["untouched"]["version"] == "um-1"
    resources.database.write(lambda session: registry.rollback(session, "um"))
    forecaster.refresh()
    assert forecaster.describe()["kind"] == "static"


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("UPDATE models SET blob = x'00' WHERE version = :version", "its blob is not what was stored"),
        ("UPDATE models SET sha256 = '' WHERE version = :version", "its blob is not what was stored"),
        ("UPDATE models SET manifest = '{\"kind\": ' WHERE version = :version", "its manifest is no JSON"),
        ("UPDATE models SET manifest = '[1]' WHERE version = :version", "its manifest is no JSON object"),
        (
            "UPDATE models SET manifest = json_set(manifest, '$.margins.known', -1.0) WHERE version = :version",
            "its manifest is not what was stored",
        ),
    ],
)
def test_a_registry_that_is_damaged_leaves_the_last_good_model_then_the_static_share(
    resources, candidate, caplog, monkeypatch, damage, why
):
    """Whoever leads now or next decides on; logs, the list and the status check say what is wrong."""
    store(resources, candidate)
    resources.database.write(lambda session: registry.add(session, "um-2", candidate.manifest, candidate.blob))
    resources.database.write(lambda session: registry.promote(session, "um-2"))
    monkeypatch.setattr(status.Database, "from_conf", lambda _conf: resources.database)
    resources.conf.model.max_age_days = 14
    assert status.check_model(resources.conf).code is status.Code.SUCCESS
    leads = make(resources)
    for version, good in (("um-2", "um-1"), ("um-1", None)):
        resources.database.write(lambda session, hurt=version: session.execute(text(damage), {"version": hurt}))
        for forecaster in (leads, make(resources)):
            forecaster.refresh()
            told = forecaster.describe().get("untouched")
            assert (told and told["version"]) == good
            assert split(forecaster, "p1", 8192, 4).local_mib > 0
        assert f"Model {version} is corrupt: {why}" in caplog.text
        checked = status.check_model(resources.conf)
        assert checked.code is status.Code.WARNING
        assert why in checked.detail
    listed = model_text.listed(resources.database.read(registry.models), 14, datetime.now(UTC))
    assert listed.count("CORRUPT") == (2 if "manifest" in why else 0)


def test_before_its_first_round_a_leader_has_nothing_to_say(resources):
    assert make(resources).describe() is None


def test_both_models_share_the_budget_and_the_registry_tells(resources, candidate, monkeypatch):
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    alone = forecaster.describe()["points"]["0"]
    store_latency(resources, monkeypatch)
    resources.reader.history.guests = [*guests("calm", 3.0), *guests("busy", 12.0)]
    forecaster.refresh()
    points = forecaster.describe()["points"]
    assert points["5"]["insensitive"]["threshold"] == 4.0
    assert points["5"]["mispredictions_percent"] <= 2.0
    assert points["0"] == alone
    assert split(forecaster, "calm", 8192, 4).source == "insensitive"
    assert split(forecaster, "busy", 8192, 4).source == "untouched"
    for version in ("um-1", "li-1"):
        told = resources.database.read(lambda session, version=version: registry.find(session, version)).serving
        assert told["models"] == {"um": "um-1", "li": "li-1"}
        assert told["points"] == points
        assert told["budget"]["left"] == 10


def test_what_is_allowed_now_counts_and_not_what_was_at_the_training(resources, candidate):
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    before = forecaster.describe()["points"]["0"]["mispredictions_percent"]
    resources.conf.model.target_percent = 99.5
    forecaster.refresh()
    assert forecaster.describe()["points"]["0"]["mispredictions_percent"] <= 0.5 < before


@pytest.mark.parametrize("broken", ["um-1", "li-1"])
@pytest.mark.parametrize("how", ["blob", "manifest"])
def test_a_broken_model_leaves_the_other_one(resources, candidate, monkeypatch, caplog, broken, how):
    store(resources, candidate)
    store_latency(resources, monkeypatch)
    resources.reader.history.guests = guests("calm", 3.0)
    spoil(resources, broken, how)
    forecaster = make(resources)
    forecaster.refresh()
    forecaster.refresh()
    told = forecaster.describe()
    assert (told["untouched"] is None) == (broken == "um-1")
    assert (told["sensitivity"] is None) == (broken == "li-1")
    assert broken in caplog.text


def spoil(resources, version, how):
    values = {"blob": b"x"} if how == "blob" else {"manifest": {"kind": version[:2], "features": []}}
    mine = update(ModelRow).where(ModelRow.version == version)
    resources.database.write(lambda session: session.execute(mine.values(**values)))


def test_a_model_that_breaks_leaves_its_last_words_and_says_so_once(resources, candidate, caplog):
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    before = forecaster.describe()
    spoil(resources, "um-1", "manifest")
    forecaster.refresh()
    forecaster.refresh()
    assert forecaster.describe() == before
    assert caplog.text.count("is broken and says nothing; what model um-1 said last serves") == 1


def test_without_any_good_model_the_static_share_serves(resources, candidate, caplog):
    store(resources, candidate)
    spoil(resources, "um-1", "manifest")
    forecaster = make(resources)
    forecaster.refresh()
    assert forecaster.describe() == {"kind": "static", "percent": 15}
    assert "model um-1 is broken" in caplog.text


def decided(uuid, untouched_mib, version="um-1"):
    return Decided(uuid, version, "untouched", 4096, 5.0, untouched_mib, 7200, False)


def test_the_budget_is_watched_loudly_until_it_holds_again(resources, candidate, caplog):
    store(resources, candidate)
    history = resources.reader.history
    history.outcomes = [decided(str(number), 0) for number in range(10)]
    forecaster = make(resources)
    with caplog.at_level(logging.INFO):
        forecaster.refresh()
        forecaster.refresh()
    assert not forecaster.allowance().allows("um-1")
    assert caplog.text.count("budget is used up") == 1
    told = resources.database.read(lambda session: registry.find(session, "um-1")).serving["budget"]
    assert (told["failed"], told["left"]) == (10, 0)
    history.outcomes += [decided(f"good{number}", 8192) for number in range(1000)]
    forecaster.refresh()
    assert forecaster.allowance().allows("um-1")
    assert caplog.text.count("budget holds again") == 1


def test_what_was_placed_since_the_last_account_is_taken_off(resources, candidate):
    store(resources, candidate)
    forecaster = make(resources)
    forecaster.refresh()
    assert forecaster.allowance().allows("um-1", 10)
    placed = Split(4096, 4096, "untouched", 0.98, "", "um-1")
    items = [RememberedSplit(str(number), "", placed) for number in range(4)]
    forecaster.note([*items, RememberedSplit("static", "", Split(1, 1, "static", 1.0, ""))])
    forecaster.note(items)
    assert forecaster.allowance().left == pytest.approx(6.0)
    forecaster.refresh()  # the account has them, or they were not kept
    assert forecaster.allowance().left == 10.0


def test_without_a_model_there_is_no_budget(resources):
    forecaster = make(resources)
    forecaster.refresh()
    assert forecaster.allowance() is None


def test_a_former_leader_notes_nothing(resources, candidate):
    store(resources, candidate)

    def fenced(_session):
        raise NotLeader("another one leads")

    with pytest.raises(NotLeader):
        Forecaster(resources, fenced).refresh()
    assert resources.database.read(lambda session: registry.find(session, "um-1")).serving == {}
