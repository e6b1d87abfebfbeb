"""The list of controllers in memory says what the one in SQL does."""

from pathlib import Path
from typing import Any

import pytest

from pondstack.db import controllers, migration
from pondstack.db.engine import Database
from pondstack.testing import memory_controllers
from pondstack.testing.memory_store import MemoryStore


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """A database, and the module that keeps the list there."""
    if request.param == "memory":
        return MemoryStore(), memory_controllers
    database = Database.from_url(f"sqlite:///{tmp_path}/ledger.db", retry_seconds=0.0)
    migration.sync(database)
    return database, controllers


@pytest.mark.parametrize(("said", "low", "high"), [(None, None, None), (30.0, 30.0, 40.0), (-5.0, 0.0, 0.0)])
def test_when_it_last_reached_the_broker(store, said, low, high) -> None:
    database, module = store

    def say(holder: str, **more: Any) -> Any:
        arguments = {"role": module.STANDBY, "epoch": 0, "followed_sequence": 0, **more}
        return database.write(lambda session: module.say(session, "one", holder, **arguments))

    say("one:1:x", reached_seconds=said)
    (item,) = database.read(lambda session: module.views(session, 5.0))
    assert item.reached_seconds is low is None or low <= item.reached_seconds <= high
    say("one:2:y")
    (item,) = database.read(lambda session: module.views(session, 5.0))
    assert item.reached_seconds is None
