"""The leader trains each night and watches what serves; what fails, or comes of a former leader, changes nothing."""

import logging
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from pondstack.cmd import model_text, status
from pondstack.controller.history import candidates, drift, nightly
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.models import ModelRow
from pondstack.db.store import registry
from pondstack.domain.errors import BadRequest, Conflict, NotLeader, Unavailable
from pondstack.prediction import trainer
from pondstack.prediction.features import FEATURES
from pondstack.prediction.trainer import Candidate
from tests.fixtures import lifetimes

ITEMS = lifetimes.generate(projects=12, weeks=2)
SHIFT = datetime.now(UTC) - timedelta(minutes=1) - lifetimes.end(ITEMS)
RECENT = [replace(item, created_at=item.created_at + SHIFT, deleted_at=item.deleted_at + SHIFT) for item in ITEMS]
TOUCHED = [replace(item, untouched_mib=0) for item in RECENT]
MANIFEST = {
    "kind": "um",
    "features": list(FEATURES),
    "slice_mib": 1024,
    "words": {"image_os": [], "zone": []},
    "margins": {"known": 0.0, "cold": 0.0},
    "data": {"lifetimes": {}},
    "newest": {"candidate": {"um": 30.0, "op": 1.0}},
    "verdict": {"better": True, "not_better_than": [], "text": "UM 30 %"},
}


class Flat:
    """A model that says of all instances that half their memory stays untouched."""

    def __init__(self, _blob, _features):
        pass

    def predict(self, rows):
        return [0.5 for _row in rows]


@pytest.fixture
def resources(tmp_path, monkeypatch):
    monkeypatch.setattr(nightly.runtime, "missing", list)
    monkeypatch.setattr(trainer, "OnnxModel", Flat)
    database = Database.from_url(f"sqlite:///{tmp_path}/ledger.db")
    migration.sync(database)
    model = SimpleNamespace(
        train_at_hour=datetime.now(UTC).hour,
        window_seconds=60 * 86400,
        over_prediction_percent=4.0,
        target_percent=98.0,
        training_seconds=60,
        training_memory_mib=1024,
    )
    conf = SimpleNamespace(
        model=model,
        sizing=SimpleNamespace(static_pool_percent=15),
        prediction=SimpleNamespace(min_coverage=0.5),
    )
    history = SimpleNamespace(items=[])
    history.lifetimes = lambda _chosen: history.items
    yield SimpleNamespace(database=database, conf=conf, reader=SimpleNamespace(history=history))
    database.dispose()


def lead(_session):
    """The fence of one that leads."""


def over(_session):
    raise NotLeader("the epoch has ended")


def another_habit():
    """Instances that touch all, after two weeks of such as touched nothing."""
    since = datetime.now(UTC) - timedelta(days=2)
    return [replace(item, untouched_mib=0 if item.created_at > since else item.memory_mib - 1) for item in RECENT]


def store(resources, version, days=3.0):
    """Have a model serve since some days ago."""

    def work(session):
        registry.add(session, version, MANIFEST, b"blob")
        registry.promote(session, version)
        past = time.time() - days * 86400
        row = update(ModelRow).where(ModelRow.version == version)
        session.execute(row.values(created_at=past, promoted_at=past))

    resources.database.write(work)


def states(resources):
    return {item.version: item.state for item in resources.database.read(registry.models)}


def task(resources, fence=lead):
    return nightly.Nightly(resources, fence)


@pytest.fixture
def trained(monkeypatch):
    """The trainings that were begun; each ends with a good candidate, or raises what `answer` holds."""
    made = SimpleNamespace(count=0, answer=None)

    def train(*_arguments, **_named):
        made.count += 1
        if made.answer:
            raise made.answer
        return Candidate(b"new", MANIFEST)

    monkeypatch.setattr(candidates.sandbox, "train", train)
    return made


@pytest.mark.parametrize(
    ("hour", "last", "wanted"),
    [(3, 4, False), (3, -1, True), (3, 2, True), (9, -10, False), (9, -16, True), (-1, -99, False)],
)
def test_a_training_is_due_once_a_day(hour, last, wanted):
    """It is 8 o'clock; the last one ended so many hours after midnight."""
    midnight = datetime(2026, 5, 5, tzinfo=UTC)
    ended = (midnight + timedelta(hours=last)).timestamp()
    assert nightly.due(midnight + timedelta(hours=8), hour, ended) is wanted


def test_a_night_trains_once_whoever_leads(resources, trained):
    store(resources, "um-1")
    task(resources).run()
    new = states(resources).keys() - {"um-1"}
    assert [states(resources)[version] for version in new] == ["running"]
    assert states(resources)["um-1"] == "retired"
    task(resources).run()
    assert trained.count == 1


def test_nothing_is_due_without_extra_or_at_the_first_start_or_when_off(resources, trained, monkeypatch):
    task(resources).run()
    store(resources, "um-1")
    resources.conf.model.train_at_hour = -1
    task(resources).run()
    resources.conf.model.train_at_hour = 0
    monkeypatch.setattr(nightly.runtime, "missing", lambda: ["onnxruntime"])
    task(resources).run()
    assert trained.count == 0


@pytest.mark.parametrize("error", [BadRequest("too little history"), Unavailable("out of memory")])
def test_a_failure_is_told_once_a_night_and_changes_nothing(resources, trained, caplog, error):
    store(resources, "um-1")
    trained.answer = error
    for _leader in range(2):
        task(resources).run()
    assert caplog.text.count("The nightly training failed") == trained.count == 1
    assert error.message in caplog.text
    found = states(resources)
    assert found.pop("um-1") == "running"
    ((version, state),) = found.items()
    assert state == "failed"
    records = resources.database.read(registry.models)
    assert error.message in model_text.listed(records, 14, datetime.now(UTC))
    assert error.message in model_text.shown(next(item for item in records if item.version == version))
    with pytest.raises(Conflict, match="no model"):
        resources.database.write(lambda session: registry.promote(session, version))


def test_a_former_leader_stores_and_demotes_nothing(resources, trained):
    store(resources, "um-1")
    with pytest.raises(NotLeader):
        task(resources, over).run()
    assert trained.count == 1
    resources.reader.history.items = another_habit()
    with pytest.raises(NotLeader):
        drift.DriftWatch(resources, over).run()
    assert states(resources) == {"um-1": "running"}


def test_stop_kills_the_training(resources, monkeypatch):
    store(resources, "um-1")
    children = []

    def train(*arguments):
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
            children.append(child)
            made.stop()
            arguments[-1](child)
            child.wait(30)
        raise Unavailable("killed")

    monkeypatch.setattr(candidates.sandbox, "train", train)
    made = task(resources)
    made._train(datetime.now(UTC))
    assert children[0].returncode == -9
    assert states(resources) == {"um-1": "running"}


def test_a_model_that_drifts_is_demoted_for_the_one_before(resources, caplog):
    store(resources, "um-1", days=9)
    store(resources, "um-2")
    resources.reader.history.items = [item for item in RECENT if item.untouched_mib > item.memory_mib // 2]
    with caplog.at_level(logging.WARNING):
        drift.DriftWatch(resources, lead).run()
        assert states(resources) == {"um-1": "retired", "um-2": "running"}
        # Those that follow touch all; what their projects left untouched before says nothing of that.
        resources.reader.history.items = another_habit()
        drift.DriftWatch(resources, lead).run()
    assert states(resources) == {"um-1": "running", "um-2": "demoted"}
    assert "um-2 is demoted, it drifted" in caplog.text
    assert "um-1 serves now" in caplog.text
    records = resources.database.read(registry.models)
    assert "demoted at" in model_text.listed(records, 14, datetime.now(UTC))


def test_a_model_that_was_not_followed_by_any_instance_stays(resources):
    store(resources, "um-1", days=0.0)
    resources.reader.history.items = TOUCHED
    drift.DriftWatch(resources, lead).run()
    assert states(resources) == {"um-1": "running"}


def test_an_old_model_is_stale(resources):
    store(resources, "um-1", days=20)
    (record,) = resources.database.read(registry.models)
    now = datetime.now(UTC)
    assert "STALE: made 20 days ago" in model_text.listed([record], 14, now)
    assert model_text.stale(record, 30, now) == model_text.stale(record, 0, now) == ""


def test_the_upgrade_check_warns_of_a_stale_model(resources, monkeypatch):
    monkeypatch.setattr(status.Database, "from_conf", lambda _conf: resources.database)
    resources.conf.model.max_age_days = 14
    store(resources, "um-1", days=13)
    assert status.check_model(resources.conf).code is status.Code.SUCCESS
    store(resources, "um-2", days=20)
    found = status.check_model(resources.conf)
    assert found.code is status.Code.WARNING
    assert "um-2 is stale" in found.detail
