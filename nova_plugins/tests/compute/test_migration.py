"""A guest moves: cold migration, resize, live migration."""

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from nova import exception, objects

from nova_plugins.tests.compute.refusals import refused
from nova_plugins.tests.compute.virt_rig import VM, Driver, Rack, claim, guest, h1, h2, rack, spawn
from pondstack.domain import errors
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable
from tests.fixtures.fake_agents import node_backing

__all__ = ["h1", "h2", "rack"]


# Cold migration and resize.


def _finish(driver: Driver, instance: Any, allocations: Any) -> Any:
    return driver.finish_migration(
        "context", SimpleNamespace(uuid="migration"), instance, "disks", [], "image", True, allocations, {}, True
    )


def test_cold_migration_moves_the_slices(rack: Rack, h1: Driver, h2: Driver) -> None:
    spawn(h1, guest())
    h1.migrate_disk_and_power_off("context", guest(), "h2")
    assert h1.seen[-1] == ("migrate_disk_and_power_off", 1024)
    assert rack.agents.held == {}
    _finish(h2, guest(), claim("h2"))
    assert h2.seen == [("finish_migration", 1024)]


def test_a_source_that_cannot_power_off_keeps_the_slices(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    h1.breaks = {"migrate_disk_and_power_off"}
    with pytest.raises(exception.InternalError):
        h1.migrate_disk_and_power_off("context", guest(), "h2")
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_a_destination_that_fails_is_undone(rack: Rack, h2: Driver) -> None:
    h2.breaks = {"finish_migration"}
    with pytest.raises(exception.InternalError):
        _finish(h2, guest(), claim("h2"))
    assert rack.agents.held == {}


def test_revert_attaches_again_at_the_source(rack: Rack, h1: Driver, h2: Driver) -> None:
    _finish(h2, guest(), claim("h2"))
    h2.destroy("context", guest())
    assert rack.agents.held == {}
    h1.finish_revert_migration("context", guest(), [], SimpleNamespace(uuid="migration"), {}, True)
    assert h1.seen == [("finish_revert_migration", 1024)]


def test_a_migration_that_broke_off_finds_the_sources_claim_under_its_own_uuid(rack: Rack, h1: Driver) -> None:
    rack.claims = {VM: claim("h2"), "migration": claim("h1")}
    h1.finish_revert_migration("context", guest(), [], SimpleNamespace(uuid="migration"), {}, True)
    assert h1.seen == [("finish_revert_migration", 1024)]


def test_a_resize_on_the_same_host_changes_the_amount(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    h1.migrate_disk_and_power_off("context", guest(), "h1")
    bigger = guest(memory_mib=8192)
    _finish(h1, bigger, claim("h1", local=6144, pool=2048))
    assert rack.agents.hosts_of(VM) == {"h1": 2048}
    h1.destroy("context", bigger)
    rack.claims[VM] = claim("h1")
    h1.finish_revert_migration("context", guest(), [], SimpleNamespace(uuid="migration"))
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_what_is_attached_but_no_longer_claimed_is_replaced(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    _finish(h1, guest(memory_mib=8192), claim("h1", local=6144, pool=2048))
    assert rack.agents.hosts_of(VM) == {"h1": 2048}
    _finish(h1, guest(), claim("h1", local=4096, pool=0))
    assert rack.agents.held == {}


def test_slices_in_use_are_not_replaced_under_a_running_guest(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    rack.claims[VM] = claim("h1", local=2048, pool=2048)
    rack.agents.faults["detach"] = [errors.Unavailable("in use")]
    with pytest.raises(PoolMemoryUnavailable, match="stop the guest first"):
        h1.reboot(guest())
    assert [name for name, _ in h1.seen] == ["spawn"]
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


# Live migration.


def _pre(driver: Driver, data: Any = None) -> Any:
    return driver.pre_live_migration("context", guest(), {}, [], "disks", data or objects.LibvirtLiveMigrateData())


def test_live_migration_attaches_the_sources_shape_at_the_destination(rack: Rack, h1: Driver, h2: Driver) -> None:
    rack.agents.shape = (2, 1)
    rack.claims[VM] = claim("h1", local=1024, pool=3072)
    spawn(h1, guest(), rack.claims[VM])
    rack.agents.shape = None
    rack.claims[VM] = claim("h2", local=1024, pool=3072)
    _pre(h2)
    assert h2.seen == [("pre_live_migration", 3072)]
    assert rack.agents.attaches[-1]["shape"] == (2, 1)
    h1.post_live_migration("context", guest())
    assert rack.agents.hosts_of(VM) == {"h2": 3072}


def _moving(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    rack.claims[VM] = claim("h2")


def test_nova_is_told_to_clean_up_at_the_destination(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    assert _pre(h2).dst_numa_info.cell_pins == {}


def test_the_destinations_bindings_travel_to_the_source(rack: Rack, h1: Driver, h2: Driver) -> None:
    rack.agents.backing = node_backing({"h1": 2, "h2": 5})
    _moving(rack, h1)
    h2._pond_cell_pins = lambda attachment: {"1": {attachment.backings[0].host_node}}
    assert _pre(h2).dst_numa_info.cell_pins == {"1": {5}}


def test_a_destination_that_cannot_prepare_is_undone(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    h2.breaks = {"pre_live_migration"}
    with pytest.raises(exception.InternalError):
        _pre(h2)
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_a_destination_without_slices_ends_the_migration_with_the_reason(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    rack.agents.faults["attach"] = [errors.PoolFragmented("no two adjacent slices")]
    with refused("no two adjacent slices", exception.MigrationPreCheckError):
        _pre(h2)
    assert h2.seen == []
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_a_failed_migration_is_rolled_back_at_the_destination(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    _pre(h2)
    h2.rollback_live_migration_at_destination("context", guest(), [], {})
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_even_a_failing_rollback_or_post_step_releases(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    _pre(h2)
    h1.breaks, h2.breaks = {"post_live_migration"}, {"rollback"}
    with pytest.raises(exception.InternalError):
        h2.rollback_live_migration_at_destination("context", guest(), [], {})
    with pytest.raises(exception.InternalError):
        h1.post_live_migration("context", guest())
    assert rack.agents.held == {}


def test_a_second_try_does_not_trip_over_the_first(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    _pre(h2)
    first = rack.agents.held[("h2", VM)].allocation_uuid
    _pre(h2)
    assert rack.agents.held[("h2", VM)].allocation_uuid != first


def _check(driver: Driver, allocs: Any) -> Any:
    return driver.check_source_migrate_data_at_dest("context", guest(), "data", None, None, allocs)


def test_a_fitting_live_migration_passes_the_check(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    assert _check(h2, claim("h2")) == "data"


@pytest.mark.parametrize(
    ("allocs", "text"),
    [
        (claim("h2", local=2048, pool=2048), "claims 2048 MiB"),
        (claim("h1"), r"could not be attached \(pondstack.conflict\)"),
    ],
)
def test_a_split_that_does_not_match_is_refused(
    rack: Rack, h1: Driver, h2: Driver, allocs: dict[str, Any], text: str
) -> None:
    _moving(rack, h1)
    with pytest.raises(exception.MigrationPreCheckError, match=text):
        _check(h2, allocs)


def test_a_running_guest_without_znuma_cannot_get_it_by_a_live_migration(h2: Driver) -> None:
    with pytest.raises(exception.MigrationPreCheckError, match="has no pool memory"):
        _check(h2, claim("h2"))


ALL_LOCAL: dict[str, Any] = claim("h2", local=4096, pool=0)
KEPT_SHARE: dict[str, Any] = claim("h2", local=4096)


@pytest.mark.parametrize("allocs", [ALL_LOCAL, KEPT_SHARE], ids=["local", "a mitigation is open"])
def test_a_destination_where_all_is_local_attaches_nothing(
    rack: Rack, h1: Driver, h2: Driver, allocs: dict[str, Any]
) -> None:
    """Its nodes are local memory there, and the source's slices go back."""
    spawn(h1, guest())
    rack.claims[VM] = allocs
    assert _check(h2, allocs) == "data"
    data = _pre(h2)
    assert h2.seen == [("pre_live_migration", 0)]
    assert "dst_numa_info" not in data, "the source must not take it for one with pool memory"
    assert rack.agents.hosts_of(VM) == {"h1": 1024}
    h1.post_live_migration("context", guest())
    assert rack.agents.held == {}


def test_a_guest_that_was_corrected_moves_on(rack: Rack, h2: Driver) -> None:
    rack.claims[VM] = ALL_LOCAL
    assert _check(h2, ALL_LOCAL) == "data"
    _pre(h2)
    assert rack.agents.attaches == []


def test_what_an_earlier_attempt_attached_goes_before_a_move_to_local_memory(
    rack: Rack, h1: Driver, h2: Driver
) -> None:
    _moving(rack, h1)
    _pre(h2)
    rack.claims[VM] = ALL_LOCAL
    _pre(h2)
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_nobody_says_how_it_is_split_at_the_destination(h1: Driver, h2: Driver) -> None:
    spawn(h1, guest())
    with pytest.raises(exception.MigrationPreCheckError, match="holds no MEMORY_MB"):
        _check(h2, {"h2-rp": {"resources": {"VCPU": 1}}})


def test_a_silent_source_agent_ends_the_check(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    rack.agents.down.add("h1")
    with refused("host h1.*: pondstack-agent does not answer", exception.MigrationPreCheckError):
        _check(h2, claim("h2"))


@pytest.mark.parametrize(
    ("allocs", "fault"),
    [
        (claim("h2"), errors.Refused("it does not move there")),
        (ALL_LOCAL, errors.Refused("it does not move there")),
        (ALL_LOCAL, errors.Unavailable("no controller answers")),
    ],
)
def test_a_source_that_does_not_tell_what_it_holds_is_not_one_that_holds_nothing(
    rack: Rack, h1: Driver, h2: Driver, allocs: dict[str, Any], fault: errors.PondError
) -> None:
    _moving(rack, h1)
    rack.agents.faults["get"] = [fault]
    with pytest.raises(exception.MigrationPreCheckError, match=fault.code):
        _check(h2, allocs)


def test_a_move_waits_for_a_controller_that_says_whether_it_is_one(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    rack.agents.faults["get"] = [errors.Unavailable("no controller answers")] * 3
    assert _check(h2, claim("h2")) == "data"


def test_who_is_shut_out_is_heard_of_before_the_source_is_asked(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    heard: list[str] = []
    h2.pool_memory.hear_of_revocations = heard.append  # type: ignore[method-assign]
    _check(h2, claim("h2"))
    _pre(h2)
    assert heard == ["h2", "h2"], "by the own host's agent"


def test_a_silent_own_agent_is_no_reason_against_a_move_of_a_plain_guest(rack: Rack, h2: Driver) -> None:
    rack.claims[VM] = ALL_LOCAL
    rack.agents.down.add("h2")
    assert _check(h2, ALL_LOCAL) == "data"


def test_a_destination_that_backs_pool_memory_otherwise_is_refused(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    rack.agents.backing = node_backing({"h2": 3})
    with pytest.raises(exception.MigrationPreCheckError, match="backs pool memory otherwise"):
        _pre(h2)
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_hosts_are_named_by_node_not_by_service(h1: Driver) -> None:
    h1.get_nodenames_by_uuid = lambda: {str(uuid.UUID(int=1)): "h1.domain"}
    assert h1._pond_node() == (str(uuid.UUID(int=1)), "h1.domain")
