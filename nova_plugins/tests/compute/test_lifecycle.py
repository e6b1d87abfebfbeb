"""Each step of a guest's life on one host: spawn, reboot, rebuild, delete."""

from typing import Any

import pytest
from keystoneauth1 import exceptions as keystone
from nova import exception

from nova_plugins.tests.compute.refusals import refused
from nova_plugins.tests.compute.virt_rig import POND, POOL, VM, Driver, Rack, claim, guest, h1, h2, rack, spawn
from pondstack.domain import errors
from pondstack_nova.breaker import FAILURES_TO_OPEN
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable

__all__ = ["h1", "h2", "rack"]


# Spawn.


def test_spawn_attaches_before_the_guest_is_made(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    assert h1.seen == [("spawn", 1024)]
    (wish,) = rack.agents.attaches
    assert (wish["pool_uuid"], wish["pool_mib"], wish["guest_mib"]) == (POOL, 1024, 4096)
    assert (wish["project_id"], wish["user_id"]) == ("project", "user")


PLAIN: dict[str, str] = {}
FLAVORS = pytest.mark.parametrize("specs", [PLAIN, {"pond:policy": "local"}, POND], ids=["plain", "local", "fixed"])


@FLAVORS
def test_a_guest_that_claims_no_pool_memory_needs_no_agent(rack: Rack, h1: Driver, specs: dict[str, str]) -> None:
    rack.agents.down = {"h1", "h2"}
    rack.claims[VM] = claim("h1", local=4096, pool=0)
    instance = guest(specs)
    spawn(h1, instance, rack.claims[VM])
    assert rack.agents.log == []
    h1.reboot(instance)
    h1.migrate_disk_and_power_off("context", instance)
    h1.pre_live_migration("context", instance, {}, [], "disks", "data")
    h1.post_live_migration("context", instance)
    h1.check_source_migrate_data_at_dest("context", instance, "data", None, None, {})
    h1.rollback_live_migration_at_destination("context", instance)
    h1.destroy("context", instance)
    assert rack.agents.attaches == []
    asked = len(rack.agents.log)
    for _ in range(5):
        h1.reboot(instance)
        h1.destroy("context", instance)
    assert len(rack.agents.log) == asked, "a silent agent is left alone"


def test_an_agent_that_answers_again_is_asked_again(rack: Rack, h1: Driver) -> None:
    rack.agents.down = {"h1"}
    for _ in range(4):
        h1.destroy("context", guest(PLAIN))
    assert rack.agents.log == ["detach h1"] * FAILURES_TO_OPEN
    rack.agents.down.clear()
    spawn(h1, guest(PLAIN))
    h1.destroy("context", guest(PLAIN))
    assert rack.agents.held == {}


@FLAVORS
def test_the_claim_decides_and_not_the_flavor(rack: Rack, h1: Driver, specs: dict[str, str]) -> None:
    instance = guest(specs)
    spawn(h1, instance)
    h1.reboot(instance)
    assert h1.seen == [("spawn", 1024), ("destroy", 1024), ("made anew", 1024)]
    h1.destroy("context", instance)
    assert rack.agents.held == {}


def test_a_pond_flavor_that_was_placed_all_local(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest(), claim("h1", local=4096, pool=0))
    assert h1.seen == [("spawn", 0)]
    assert rack.agents.attaches == []


def test_a_failing_spawn_is_undone(rack: Rack, h1: Driver) -> None:
    h1.breaks = {"spawn"}
    with pytest.raises(exception.InternalError):
        spawn(h1, guest())
    assert rack.agents.held == {}


def test_a_failing_attach_makes_nova_reschedule_and_no_guest(rack: Rack, h1: Driver) -> None:
    rack.agents.faults["attach"] = [errors.PoolShortage("pool0 has no free slice")]
    with refused("pool0 has no free slice"):
        spawn(h1, guest())
    assert h1.seen == []


def test_a_dead_agent_makes_nova_reschedule(rack: Rack, h1: Driver) -> None:
    rack.agents.down.add("h1")
    with refused("start pondstack-agent"):
        spawn(h1, guest())
    assert h1.seen == []


def test_placement_is_asked_when_nova_hands_no_allocations_over(h1: Driver) -> None:
    h1.spawn("context", guest(), "image", [], None, None)
    assert h1.seen == [("spawn", 1024)]


def test_a_guest_with_numa_nodes_of_novas_is_refused_for_good(rack: Rack, h1: Driver) -> None:
    with pytest.raises(exception.BuildAbortException, match="NUMA"):
        spawn(h1, guest(numa_topology=object()))
    assert rack.agents.log == []


def test_a_claim_that_does_not_add_up_is_refused(h1: Driver) -> None:
    with refused("schedule it again"):
        spawn(h1, guest(), claim("h1", pool=0))


# Delete and what keeps.


def test_destroy_releases_after_the_guest_is_gone(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    h1.destroy("context", guest())
    assert h1.seen[-1] == ("destroy", 1024)
    assert rack.agents.held == {}


def test_a_guest_that_could_not_be_destroyed_keeps_its_memory(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    h1.breaks = {"destroy"}
    with pytest.raises(exception.InternalError):
        h1.destroy("context", guest())
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_delete_does_not_fail_because_the_agent_is_down(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    rack.agents.down.add("h1")
    h1.destroy("context", guest())
    assert h1.seen[-1] == ("destroy", 1024)


def test_a_guest_deleted_in_the_middle_of_a_resize_is_released(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    h1.destroy("context", guest(PLAIN))
    assert rack.agents.held == {}


def test_hard_reboot_keeps_the_slices(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    before = rack.agents.held.copy()
    h1.reboot(guest())
    assert h1.seen[1:] == [("destroy", 1024), ("made anew", 1024)]
    assert rack.agents.held == before
    assert "detach h1" not in rack.agents.log


def test_hard_reboot_looks_for_the_slices_before_it_tears_the_guest_down(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    rack.agents.down.add("h1")
    with pytest.raises(PoolMemoryUnavailable):
        h1.reboot(guest())
    assert [name for name, _ in h1.seen] == ["spawn"]


def test_hard_reboot_attaches_what_was_lost(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    rack.agents.lose("h1")
    h1.reboot(guest())
    assert h1.seen[-1] == ("made anew", 1024)


def test_a_guest_whose_claim_went_away_with_a_broken_migration_restarts_on_its_slices(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    rack.claims[VM] = claim("h2")
    h1.reboot(guest())
    assert h1.seen[-1] == ("made anew", 1024)
    rack.agents.lose("h1")
    with refused("holds no MEMORY_MB of this host"):
        h1.reboot(guest())


@pytest.mark.parametrize(
    "error", [keystone.ConnectFailure(), exception.ConsumerAllocationRetrievalFailed(consumer_uuid=VM, error="")]
)
def test_without_placement_a_guest_stays_what_it_was(rack: Rack, h1: Driver, error: Exception) -> None:
    spawn(h1, guest(PLAIN))
    rack.silent = error
    h1.reboot(guest(PLAIN))
    assert h1.seen[-1] == ("made anew", 1024)
    rack.agents.lose("h1")
    with refused("Placement does not answer"):
        h1.reboot(guest(PLAIN))
    h1._pond_had_pool_memory = lambda _instance: False
    h1.reboot(guest(PLAIN))
    assert h1.seen[-1] == ("made anew", 0)


def test_a_guest_without_any_claim_is_restarted_as_nova_does_unless_it_had_pool_memory(rack: Rack, h1: Driver) -> None:
    rack.claims.clear()
    h1.reboot(guest(PLAIN))
    assert h1.seen[-1] == ("made anew", 0)
    h1._pond_had_pool_memory = lambda _instance: True
    with refused("holds no MEMORY_MB of this host"):
        h1.reboot(guest(PLAIN))
    spawn(h1, guest(PLAIN))
    h1.reboot(guest(PLAIN))
    assert h1.seen[-1] == ("made anew", 1024)


def test_destroy_after_a_hard_reboot_releases(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    h1.reboot(guest())
    h1.destroy("context", guest())
    assert rack.agents.held == {}


def _rebuild(driver: Driver, **more: Any) -> None:
    with pytest.raises(NotImplementedError):
        driver.rebuild(context="context", instance=guest(task_state="rebuilding"), **more)


def test_rebuild_keeps_the_slices(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    before = rack.agents.held.copy()
    _rebuild(h1, evacuate=False)
    h1.destroy("context", guest(task_state="rebuilding"))
    spawn(h1, guest(task_state="rebuild_spawning"))
    assert h1.seen[1:] == [("rebuild", 1024), ("destroy", 1024), ("spawn", 1024)]
    assert rack.agents.held == before
    assert len(rack.agents.attaches) == 1


def test_a_rebuild_that_fails_to_spawn_keeps_the_slices_for_the_next_try(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    _rebuild(h1)
    h1.destroy("context", guest(task_state="rebuilding"))
    h1.breaks = {"spawn"}
    with pytest.raises(exception.InternalError):
        spawn(h1, guest())
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_a_delete_after_an_interrupted_rebuild_releases(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    _rebuild(h1)
    h1.destroy("context", guest(task_state="deleting"))
    assert rack.agents.held == {}


def test_the_destroy_after_a_rebuild_releases(rack: Rack, h1: Driver) -> None:
    spawn(h1, guest())
    _rebuild(h1)
    h1.destroy("context", guest(task_state="rebuilding"))
    h1.destroy("context", guest(task_state="rebuilding"))
    assert rack.agents.held == {}


def test_an_evacuated_guests_old_host_releases_when_it_is_back(rack: Rack, h1: Driver, h2: Driver) -> None:
    spawn(h1, guest())
    _rebuild(h2, evacuate=True)
    spawn(h2, guest(), claim("h1", "h2"))
    assert rack.agents.hosts_of(VM) == {"h1": 1024, "h2": 1024}
    h1.destroy("context", guest(task_state="rebuilding", node="h2"))
    assert rack.agents.hosts_of(VM) == {"h2": 1024}
