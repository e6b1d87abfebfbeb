"""The leader describes the predictor in force: the serving model's table, or the static share, said loudly."""

import logging
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from pondstack.cmd import model_text, status
from pondstack.controller.history.forecaster import Forecaster
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.store import registry
from pondstack.domain.sizing import Features, Policy, PondSpecs
from pondstack.domain.telemetry import Source
from pondstack.prediction import runtime, trainer
from pondstack.prediction.examples import read
from pondstack.prediction.serving import make_predictor
from tests.fixtures import lifetimes

ITEMS = lifetimes.generate(projects=12, weeks=6)
SHIFT = datetime.now(UTC) - lifetimes.end(ITEMS)
RECENT = [replace(item, created_at=item.created_at + SHIFT, deleted_at=item.deleted_at + SHIFT) for item in ITEMS]
"""The same, ended just now."""


class HistoryOf:
    def __init__(self, items):
        self.items = items

    def lifetimes(self, *_chosen):
        return self.items


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
        model=SimpleNamespace(refresh_seconds=300),
        sizing=SimpleNamespace(static_pool_percent=15),
        prediction=SimpleNamespace(min_coverage=0.5),
    )
    yield SimpleNamespace(database=database, conf=conf, reader=SimpleNamespace(history=HistoryOf(RECENT)))
    database.dispose()


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
    forecaster = Forecaster(resources)
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
    forecaster = Forecaster(resources)
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
    forecaster = Forecaster(resources)
    forecaster.refresh()
    assert forecaster.describe()["projects"] == {}


def test_a_model_that_is_rolled_back_decides_no_more(resources, candidate):
    store(resources, candidate)
    forecaster = Forecaster(resources)
    forecaster.refresh()
    assert forecaster.describe()["version"] == "um-1"
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
    leads = Forecaster(resources)
    for version, kind in (("um-2", "um"), ("um-1", "static")):
        resources.database.write(lambda session, hurt=version: session.execute(text(damage), {"version": hurt}))
        for forecaster in (leads, Forecaster(resources)):
            forecaster.refresh()
            assert forecaster.describe()["kind"] == kind
            assert split(forecaster, "p1", 8192, 4).local_mib > 0
        assert f"Model {version} is corrupt: {why}" in caplog.text
        checked = status.check_model(resources.conf)
        assert checked.code is status.Code.WARNING
        assert why in checked.detail
    listed = model_text.listed(resources.database.read(registry.models), 14, datetime.now(UTC))
    assert listed.count("CORRUPT") == (2 if "manifest" in why else 0)
