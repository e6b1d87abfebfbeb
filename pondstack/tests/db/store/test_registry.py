"""The registry on each database: one model of a kind runs, and only what is whole serves."""

import logging
from threading import Thread

import pytest
from sqlalchemy import JSON, type_coerce, update

from pondstack.db.manifest import SEAL
from pondstack.db.models import ModelRow, table
from pondstack.db.read.models import SqlModels
from pondstack.db.store import registry
from pondstack.domain.errors import Conflict, NotFound

MANIFEST = {"kind": "um", "features": ["a"], "newest": {"candidate": {"um": 25.0, "op": 1.5}}}
BLOB = bytes(range(256)) * 800  # more than MariaDB's smallest BLOB takes


@pytest.fixture
def stored(database):
    for version in ("um-1", "um-2", "um-3"):
        database.write(
            lambda session, version=version: registry.add(session, version, MANIFEST, BLOB + version.encode())
        )
    return database


def promote(database, version):
    return database.write(lambda session: registry.promote(session, version))


def rollback(database):
    return database.write(lambda session: registry.rollback(session, "um"))


def serving(database):
    return database.read(lambda session: registry.serving(session, "um"))


def states(database):
    return {item.version: item.state for item in database.read(registry.models)}


def corrupt(database, version):
    row = ModelRow
    database.write(lambda session: session.execute(update(row).where(row.version == version).values(blob=b"broken")))


def change_manifest(database, version, manifest):
    """Have another one than that of the seal, as nobody does who knows of it."""
    value = type_coerce({**manifest, SEAL: registry.sha256(b"")}, JSON)
    row = table(ModelRow)
    database.write(lambda session: session.execute(update(row).where(row.c.version == version).values(manifest=value)))


def test_a_manifest_that_somebody_changed_does_not_serve(stored, caplog):
    for version in ("um-1", "um-2"):
        promote(stored, version)
    change_manifest(stored, "um-2", {**MANIFEST, "margins": {"known": 0.0}})
    with caplog.at_level(logging.ERROR):
        assert serving(stored).record.version == "um-1"
    assert "um-2 is corrupt: its manifest is not what was stored" in caplog.text
    assert stored.read(registry.corrupt).keys() == {"um-2"}
    shown = {item.version: item.manifest for item in stored.read(registry.models)}
    assert shown["um-1"] == MANIFEST
    assert "not what was stored" in shown["um-2"]["corrupt"]
    assert rollback(stored) == ("um-2", "um-1")
    with pytest.raises(Conflict, match="um-2 is corrupt"):
        promote(stored, "um-2")


def test_none_serves_before_one_is_promoted(stored):
    assert serving(stored) is None
    assert set(states(stored).values()) == {"candidate"}
    with pytest.raises(NotFound, match="nothing to roll back"):
        rollback(stored)


def test_one_of_a_kind_runs_and_comes_back_whole(stored):
    assert promote(stored, "um-1") is None
    assert promote(stored, "um-2") == "um-1"
    assert states(stored) == {"um-1": "retired", "um-2": "running", "um-3": "candidate"}
    got = serving(stored)
    assert (got.record.version, got.record.manifest, got.blob) == ("um-2", MANIFEST, BLOB + b"um-2")
    with pytest.raises(Conflict, match="runs already"):
        promote(stored, "um-2")
    with pytest.raises(NotFound, match="model list"):
        promote(stored, "um-9")


def test_rollback_goes_back_one_by_one_and_not_forth(stored):
    for version in ("um-1", "um-2", "um-3"):
        promote(stored, version)
    assert rollback(stored) == ("um-3", "um-2")
    assert rollback(stored) == ("um-2", "um-1")
    assert rollback(stored) == ("um-1", None)
    assert serving(stored) is None


def test_a_rollback_of_what_does_not_run_changes_nothing(stored):
    promote(stored, "um-1")
    promote(stored, "um-2")
    with pytest.raises(Conflict, match="um-1 does not run, um-2 does"):
        stored.write(lambda session: registry.rollback(session, "um", "um-1"))
    assert states(stored) == {"um-1": "retired", "um-2": "running", "um-3": "candidate"}
    assert stored.write(lambda session: registry.rollback(session, "um", "um-2")) == ("um-2", "um-1")


def test_of_promotions_at_once_one_model_runs(stored):
    """The second, which begins before the first is committed, would find none to retire."""
    second = Thread(target=promote, args=(stored, "um-2"))

    def first(session):
        registry.promote(session, "um-1")
        second.start()
        second.join(0.5)  # it waits for us; if it does not, it is done by now

    stored.write(first)
    second.join(30)
    assert states(stored) == {"um-1": "retired", "um-2": "running", "um-3": "candidate"}


def test_a_corrupt_model_leaves_the_place_to_the_last_good_one(stored, caplog):
    promote(stored, "um-1")
    promote(stored, "um-2")
    corrupt(stored, "um-2")
    with caplog.at_level(logging.ERROR):
        assert serving(stored).record.version == "um-1"
    assert "um-2 is corrupt" in caplog.text
    assert "um-1 serves in place" in caplog.text
    corrupt(stored, "um-1")
    assert serving(stored) is None
    assert rollback(stored) == ("um-2", None)


def test_a_corrupt_model_is_not_promoted(stored):
    promote(stored, "um-1")
    corrupt(stored, "um-2")
    with pytest.raises(Conflict, match="corrupt"):
        promote(stored, "um-2")
    assert serving(stored).record.version == "um-1"


def test_a_transaction_that_fails_promotes_nothing(stored):
    promote(stored, "um-1")

    def store(session):
        registry.add(session, "um-4", MANIFEST, BLOB)
        registry.promote(session, "um-4")
        raise NotFound("late")

    with pytest.raises(NotFound, match="late"):
        stored.write(store)
    assert states(stored) == {"um-1": "running", "um-2": "candidate", "um-3": "candidate"}


def test_pages_give_each_model_once_the_newest_first(stored):
    for age, version in enumerate(("um-3", "um-1", "um-2")):
        made = ModelRow.version == version
        moment = 1000.0 if age == 2 else 2000.0 - 500 * age
        stored.write(
            lambda session, made=made, moment=moment: session.execute(
                update(ModelRow).where(made).values(created_at=moment)
            )
        )
    reader, seen, marker = SqlModels(stored), [], None
    while found := reader.models(limit=1, marker=marker):
        marker = found[0].version
        seen.append(marker)
    assert seen == ["um-3", "um-1", "um-2"] == [item.version for item in reader.models()]
    stored.write(lambda session: session.execute(update(ModelRow).values(created_at=1000.0)))
    assert [item.version for item in reader.models(marker="um-1")] == ["um-2", "um-3"]
    assert reader.model("um-2").manifest == MANIFEST
    with pytest.raises(NotFound):
        reader.models(marker="um-9")
