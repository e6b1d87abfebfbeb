"""Each step of a guest's life, with Nova's driver class replaced by one that notes what it sees."""

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from nova import exception, objects

from pondstack.domain import errors
from pondstack.testing.fake_agents import FakeAgents, node_backing
from pondstack_nova.attachments import PoolAttachments, PoolMemoryUnavailable
from pondstack_nova.lifecycle import PoolMemoryLifecycle

POOL, VM = "pool-rp", "vm"
POND = {"pond:policy": "fixed", "pond:pool_mb": "1024"}


def _noted(name: str) -> Any:
    """Make a method that notes its step and answers its last argument (where it matters, Nova's migrate_data)."""

    def step(self: Any, *arguments: Any, **_: Any) -> Any:
        held = self.agents.held.get((self.host, VM))
        self.seen.append((name, held.pool_mib if held else 0))
        if name in self.breaks:
            raise exception.InternalError(f"{name} broke")
        if name == "rebuild":
            raise NotImplementedError
        return arguments[-1] if arguments else None

    return step


class NovaDriver:
    """Stands for a driver of Nova's: notes each step with what the guest holds on this host at that moment."""

    def __init__(self, virtapi: Any, _read_only: bool = False) -> None:
        self.virtapi = virtapi
        self.seen: list[tuple[str, int]] = []
        self.breaks: set[str] = set()

    spawn = _noted("spawn")
    finish_migration = _noted("finish_migration")
    finish_revert_migration = _noted("finish_revert_migration")
    migrate_disk_and_power_off = _noted("migrate_disk_and_power_off")
    rebuild = _noted("rebuild")
    destroy = _noted("destroy")
    pre_live_migration = _noted("pre_live_migration")
    post_live_migration = _noted("post_live_migration")
    rollback_live_migration_at_destination = _noted("rollback")
    made_anew = _noted("made anew")

    def check_source_migrate_data_at_dest(self, *arguments: Any) -> Any:
        return arguments[2]

    def get_nodenames_by_uuid(self) -> dict[str, str]:
        return {f"{self.host}-rp": self.host}


class Driver(PoolMemoryLifecycle, NovaDriver):
    """Ours over the stand-in. `agents` and `host` are set by the fixture."""

    host = "h1"

    def reboot(self, instance: Any) -> Any:
        """Reboot as the libvirt driver does: destroy and make anew."""
        with self._pond_guest("context", instance, None), self._pond_kept(instance):
            self.destroy("context", instance)
            return self.made_anew()


class Rack:
    """Two hosts, their agents, and what Placement holds: `claims`, by consumer."""

    def __init__(self) -> None:
        self.agents = FakeAgents()
        self.claims: dict[str, dict[str, Any]] = {VM: claim("h1")}
        self.drivers = {host: self._driver(host) for host in ("h1", "h2")}

    def _driver(self, host: str) -> Driver:
        report = SimpleNamespace(
            get_allocs_for_consumer=lambda _context, consumer: {"allocations": self.claims.get(consumer, {})}
        )
        driver = Driver(SimpleNamespace(reportclient=report))
        driver.host = host
        driver.agents = self.agents
        driver.pool_memory = PoolAttachments(lambda: self.agents, sleep=lambda _seconds: None)
        return driver


def claim(*hosts: str, local: int = 3072, pool: int = 1024) -> dict[str, Any]:
    """Return allocations as Nova gives them."""
    held = {f"{host}-rp": {"resources": {"VCPU": 1, "MEMORY_MB": local}} for host in hosts}
    return held | ({POOL: {"resources": {"CUSTOM_POND_MEMORY_MB": pool}}} if pool else {})


def guest(specs: dict[str, str] | None = None, memory_mib: int = 4096, **more: Any) -> Any:
    """Return an instance as the driver sees it."""
    flavor = SimpleNamespace(memory_mb=memory_mib, extra_specs=POND if specs is None else specs)
    fields = {
        "uuid": VM,
        "flavor": flavor,
        "old_flavor": None,
        "new_flavor": None,
        "task_state": None,
        "numa_topology": None,
        "node": "h1",
        "project_id": "project",
        "user_id": "user",
    }
    return SimpleNamespace(**(fields | more))


@pytest.fixture
def rack() -> Rack:
    return Rack()


@pytest.fixture
def h1(rack: Rack) -> Driver:
    return rack.drivers["h1"]


@pytest.fixture
def h2(rack: Rack) -> Driver:
    return rack.drivers["h2"]


def _spawn(driver: Driver, instance: Any, allocations: Any = None) -> Any:
    return driver.spawn("context", instance, "image", [], "password", allocations or claim(driver.host), power_on=True)


# Spawn.


def test_spawn_attaches_before_the_guest_is_made(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    assert h1.seen == [("spawn", 1024)]
    (wish,) = rack.agents.attaches
    assert (wish["pool_uuid"], wish["pool_mib"], wish["guest_mib"]) == (POOL, 1024, 4096)
    assert (wish["project_id"], wish["user_id"]) == ("project", "user")


@pytest.mark.parametrize("specs", [{}, {"pond:policy": "local"}])
def test_a_guest_without_pool_memory_never_asks_the_agent(rack: Rack, h1: Driver, specs: dict[str, str]) -> None:
    rack.agents.down = {"h1", "h2"}
    instance = guest(specs)
    _spawn(h1, instance)
    h1.reboot(instance)
    h1.migrate_disk_and_power_off("context", instance)
    h1.pre_live_migration("context", instance, {}, [], "disks", "data")
    h1.post_live_migration("context", instance)
    h1.check_source_migrate_data_at_dest("context", instance, "data", None, None, {})
    h1.rollback_live_migration_at_destination("context", instance)
    h1.destroy("context", instance)
    assert rack.agents.log == []


def test_a_pond_flavor_that_was_placed_all_local(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest(), claim("h1", local=4096, pool=0))
    assert h1.seen == [("spawn", 0)]
    assert rack.agents.attaches == []


def test_a_failing_spawn_is_undone(rack: Rack, h1: Driver) -> None:
    h1.breaks = {"spawn"}
    with pytest.raises(exception.InternalError):
        _spawn(h1, guest())
    assert rack.agents.held == {}


def test_a_failing_attach_makes_nova_reschedule_and_no_guest(rack: Rack, h1: Driver) -> None:
    rack.agents.faults["attach"] = [errors.PoolShortage("pool0 has no free slice")]
    with pytest.raises(PoolMemoryUnavailable, match="pool0 has no free slice"):
        _spawn(h1, guest())
    assert h1.seen == []


def test_a_dead_agent_makes_nova_reschedule(rack: Rack, h1: Driver) -> None:
    rack.agents.down.add("h1")
    with pytest.raises(PoolMemoryUnavailable, match="start pondstack-agent"):
        _spawn(h1, guest())
    assert h1.seen == []


def test_placement_is_asked_when_nova_hands_no_allocations_over(h1: Driver) -> None:
    h1.spawn("context", guest(), "image", [], None, None)
    assert h1.seen == [("spawn", 1024)]


def test_a_guest_with_numa_nodes_of_novas_is_refused_for_good(rack: Rack, h1: Driver) -> None:
    with pytest.raises(exception.BuildAbortException, match="NUMA"):
        _spawn(h1, guest(numa_topology=object()))
    assert rack.agents.log == []


def test_a_claim_that_does_not_add_up_is_refused(h1: Driver) -> None:
    with pytest.raises(PoolMemoryUnavailable, match="schedule it again"):
        _spawn(h1, guest(), claim("h1", pool=0))


# Delete and what keeps.


def test_destroy_releases_after_the_guest_is_gone(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    h1.destroy("context", guest())
    assert h1.seen[-1] == ("destroy", 1024)
    assert rack.agents.held == {}


def test_a_guest_that_could_not_be_destroyed_keeps_its_memory(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    h1.breaks = {"destroy"}
    with pytest.raises(exception.InternalError):
        h1.destroy("context", guest())
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_delete_does_not_fail_because_the_agent_is_down(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    rack.agents.down.add("h1")
    h1.destroy("context", guest())
    assert h1.seen[-1] == ("destroy", 1024)


def test_a_guest_deleted_in_the_middle_of_a_resize_is_released_by_its_other_flavor(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    h1.destroy("context", guest({}, old_flavor=guest().flavor))
    assert rack.agents.held == {}


def test_hard_reboot_keeps_the_slices(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    before = rack.agents.held.copy()
    h1.reboot(guest())
    assert h1.seen[1:] == [("destroy", 1024), ("made anew", 1024)]
    assert rack.agents.held == before
    assert "detach h1" not in rack.agents.log


def test_hard_reboot_looks_for_the_slices_before_it_tears_the_guest_down(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    rack.agents.down.add("h1")
    with pytest.raises(PoolMemoryUnavailable):
        h1.reboot(guest())
    assert [name for name, _ in h1.seen] == ["spawn"]


def test_hard_reboot_attaches_what_was_lost(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    rack.agents.lose("h1")
    h1.reboot(guest())
    assert h1.seen[-1] == ("made anew", 1024)


def test_a_guest_whose_claim_went_away_with_a_broken_migration_restarts_on_its_slices(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    rack.claims[VM] = claim("h2")
    h1.reboot(guest())
    assert h1.seen[-1] == ("made anew", 1024)
    rack.agents.lose("h1")
    with pytest.raises(PoolMemoryUnavailable, match="holds no MEMORY_MB of this host"):
        h1.reboot(guest())


def test_destroy_after_a_hard_reboot_releases(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    h1.reboot(guest())
    h1.destroy("context", guest())
    assert rack.agents.held == {}


def _rebuild(driver: Driver, **more: Any) -> None:
    with pytest.raises(NotImplementedError):
        driver.rebuild(context="context", instance=guest(task_state="rebuilding"), **more)


def test_rebuild_keeps_the_slices(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    before = rack.agents.held.copy()
    _rebuild(h1, evacuate=False)
    h1.destroy("context", guest(task_state="rebuilding"))
    _spawn(h1, guest(task_state="rebuild_spawning"))
    assert h1.seen[1:] == [("rebuild", 1024), ("destroy", 1024), ("spawn", 1024)]
    assert rack.agents.held == before
    assert len(rack.agents.attaches) == 1


def test_a_rebuild_that_fails_to_spawn_keeps_the_slices_for_the_next_try(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    _rebuild(h1)
    h1.destroy("context", guest(task_state="rebuilding"))
    h1.breaks = {"spawn"}
    with pytest.raises(exception.InternalError):
        _spawn(h1, guest())
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_a_delete_after_an_interrupted_rebuild_releases(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    _rebuild(h1)
    h1.destroy("context", guest(task_state="deleting"))
    assert rack.agents.held == {}


def test_the_destroy_after_a_rebuild_releases(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    _rebuild(h1)
    h1.destroy("context", guest(task_state="rebuilding"))
    h1.destroy("context", guest(task_state="rebuilding"))
    assert rack.agents.held == {}


def test_an_evacuated_guests_old_host_releases_when_it_is_back(rack: Rack, h1: Driver, h2: Driver) -> None:
    _spawn(h1, guest())
    _rebuild(h2, evacuate=True)
    _spawn(h2, guest(), claim("h1", "h2"))
    assert rack.agents.hosts_of(VM) == {"h1": 1024, "h2": 1024}
    h1.destroy("context", guest(task_state="rebuilding", node="h2"))
    assert rack.agents.hosts_of(VM) == {"h2": 1024}


# Cold migration and resize.


def _finish(driver: Driver, instance: Any, allocations: Any) -> Any:
    return driver.finish_migration(
        "context", SimpleNamespace(uuid="migration"), instance, "disks", [], "image", True, allocations, {}, True
    )


def test_cold_migration_moves_the_slices(rack: Rack, h1: Driver, h2: Driver) -> None:
    _spawn(h1, guest())
    h1.migrate_disk_and_power_off("context", guest(), "h2")
    assert h1.seen[-1] == ("migrate_disk_and_power_off", 1024)
    assert rack.agents.held == {}
    _finish(h2, guest(), claim("h2"))
    assert h2.seen == [("finish_migration", 1024)]


def test_a_source_that_cannot_power_off_keeps_the_slices(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
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
    _spawn(h1, guest())
    h1.migrate_disk_and_power_off("context", guest(), "h1")
    bigger = guest(memory_mib=8192, old_flavor=guest().flavor)
    _finish(h1, bigger, claim("h1", local=6144, pool=2048))
    assert rack.agents.hosts_of(VM) == {"h1": 2048}
    h1.destroy("context", bigger)
    rack.claims[VM] = claim("h1")
    h1.finish_revert_migration("context", guest(), [], SimpleNamespace(uuid="migration"))
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_what_is_attached_but_no_longer_claimed_is_replaced(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
    _finish(h1, guest(memory_mib=8192), claim("h1", local=6144, pool=2048))
    assert rack.agents.hosts_of(VM) == {"h1": 2048}
    _finish(h1, guest(), claim("h1", local=4096, pool=0))
    assert rack.agents.held == {}


def test_slices_in_use_are_not_replaced_under_a_running_guest(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
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
    _spawn(h1, guest(), rack.claims[VM])
    rack.agents.shape = None
    rack.claims[VM] = claim("h2", local=1024, pool=3072)
    _pre(h2)
    assert h2.seen == [("pre_live_migration", 3072)]
    assert rack.agents.attaches[-1]["shape"] == (2, 1)
    h1.post_live_migration("context", guest())
    assert rack.agents.hosts_of(VM) == {"h2": 3072}


def _moving(rack: Rack, h1: Driver) -> None:
    _spawn(h1, guest())
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
    with pytest.raises(exception.MigrationPreCheckError, match="no two adjacent slices"):
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
        (claim("h2", local=4096, pool=0), "claims 0 MiB"),
        (claim("h2", local=2048, pool=2048), "claims 2048 MiB"),
        (claim("h1"), "holds no MEMORY_MB of this host"),
    ],
)
def test_a_split_that_does_not_match_is_refused(
    rack: Rack, h1: Driver, h2: Driver, allocs: dict[str, Any], text: str
) -> None:
    _moving(rack, h1)
    with pytest.raises(exception.MigrationPreCheckError, match=text):
        _check(h2, allocs)


def test_a_running_guest_without_znuma_cannot_get_it_by_a_live_migration(h2: Driver) -> None:
    with pytest.raises(exception.MigrationPreCheckError, match="has no CPU-less NUMA node"):
        _check(h2, claim("h2"))


def test_a_silent_source_agent_ends_the_check(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    rack.agents.down.add("h1")
    with pytest.raises(exception.MigrationPreCheckError, match="host h1: pondstack-agent does not answer"):
        _check(h2, claim("h2"))


def test_a_destination_that_backs_pool_memory_otherwise_is_refused(rack: Rack, h1: Driver, h2: Driver) -> None:
    _moving(rack, h1)
    rack.agents.backing = node_backing({"h2": 3})
    with pytest.raises(exception.MigrationPreCheckError, match="backs pool memory otherwise"):
        _pre(h2)
    assert rack.agents.hosts_of(VM) == {"h1": 1024}


def test_hosts_are_named_by_node_not_by_service(h1: Driver) -> None:
    h1.get_nodenames_by_uuid = lambda: {str(uuid.UUID(int=1)): "h1.domain"}
    assert h1._pond_node() == (str(uuid.UUID(int=1)), "h1.domain")
