"""Whose allocations bind a guest's split when it is scheduled: those of a live migration that is under way."""

from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects
from nova.compute import task_states

from pondstack_nova import migrations

GUEST = "5f0c2c5e-9b1f-4c6d-8f57-1f1c1f0a3b77"


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The guest, with live migrations on record: an old one first, in the order of nobody."""
    made = SimpleNamespace(task_state=task_states.MIGRATING, asked=[])
    records = [SimpleNamespace(id=7, uuid="newest"), SimpleNamespace(id=3, uuid="old")]

    def found(_context: Any, filters: dict[str, Any]) -> list[SimpleNamespace]:
        made.asked.append(filters)
        return records

    monkeypatch.setattr(objects.Instance, "get_by_uuid", lambda _context, uuid: made if uuid == GUEST else None)
    monkeypatch.setattr(objects.MigrationList, "get_by_filters", found)
    return made


def test_the_newest_live_migration_holds_the_allocations(instance: SimpleNamespace) -> None:
    assert migrations._holder(None, GUEST) == "newest"
    [filters] = instance.asked
    assert (filters["instance_uuid"], filters["migration_type"]) == (GUEST, "live-migration")


@pytest.mark.parametrize("state", [None, task_states.RESIZE_PREP, task_states.REBUILDING, task_states.SCHEDULING])
def test_an_old_record_binds_no_guest_that_does_not_move_live(instance: SimpleNamespace, state: str | None) -> None:
    """A cold move or an evacuation of one that was migrated before."""
    instance.task_state = state
    assert migrations._holder(None, GUEST) is None
