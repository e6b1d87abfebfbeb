"""What binds the split of an instance that is moved: the claim of a live migration, and whether its flavor stays."""

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
    made = SimpleNamespace(uuid=GUEST, task_state=task_states.MIGRATING, asked=[])
    records = [SimpleNamespace(id=7, uuid="newest"), SimpleNamespace(id=3, uuid="old")]

    def found(_context: Any, filters: dict[str, Any]) -> list[SimpleNamespace]:
        made.asked.append(filters)
        return records

    monkeypatch.setattr(objects.MigrationList, "get_by_filters", found)
    return made


def test_the_newest_live_migration_holds_the_allocations(instance: SimpleNamespace) -> None:
    assert migrations._holder(None, instance) == "newest"
    [filters] = instance.asked
    assert (filters["instance_uuid"], filters["migration_type"]) == (GUEST, "live-migration")


@pytest.mark.parametrize("state", [None, task_states.RESIZE_PREP, task_states.REBUILDING, task_states.SCHEDULING])
def test_an_old_record_binds_no_guest_that_does_not_move_live(instance: SimpleNamespace, state: str | None) -> None:
    """A cold move or an evacuation of one that was migrated before."""
    instance.task_state = state
    assert migrations._holder(None, instance) is None


def flavor(memory_mib: int = 8192, vcpus: int = 2, **specs: str) -> Any:
    """Return a flavor; keywords with __ for a colon are extra specs."""
    extra_specs = {key.replace("__", ":"): value for key, value in specs.items()}
    return objects.Flavor(memory_mb=memory_mib, vcpus=vcpus, extra_specs=extra_specs)


@pytest.mark.parametrize(
    ("new", "resized"),
    [
        ({"pond__policy": "auto"}, False),
        ({"pond__policy": "auto", "resources__MEMORY_MB": "7168"}, False),
        ({"pond__policy": "auto", "pond__max_pool_percent": "0"}, True),
        ({"pond__policy": "fixed", "pond__pool_mb": "1024"}, True),
        ({"memory_mib": 16384, "pond__policy": "auto"}, True),
        ({"vcpus": 4, "pond__policy": "auto"}, True),
        ({}, True),
    ],
)
def test_a_resize_is_told_by_what_splits_follow(new: dict[str, Any], resized: bool) -> None:
    """Size and pond: specs; not what the request filter wrote into the request itself."""
    assert migrations.is_resized(flavor(pond__policy="auto"), flavor(**new)) is resized
