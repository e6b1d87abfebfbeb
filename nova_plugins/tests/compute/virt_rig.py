"""Two hosts with our driver over one that stands for Nova's and notes what it sees; fixtures are imported by name."""

from types import SimpleNamespace
from typing import Any

import pytest
from nova import exception

from pondstack_nova.compute.agent_client import PoolAttachments
from pondstack_nova.compute.lifecycle import PoolMemoryLifecycle
from pondstack_nova.compute.remote.lost_guests import LostGuests
from tests.fixtures.fake_agents import FakeAgents

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
    rollback_live_migration_at_source = _noted("rollback at source")
    init_host = _noted("init_host")
    made_anew = _noted("made anew")

    def resume_state_on_host_boot(self, _context: Any, instance: Any, *_: Any) -> Any:
        return self.reboot(instance)

    def check_source_migrate_data_at_dest(self, *arguments: Any) -> Any:
        return arguments[2]

    def update_provider_tree(self, provider_tree: Any, nodename: str, allocations: Any = None) -> None:
        del allocations
        record = {"total": 8192, "reserved": 512, "max_unit": 8192, "min_unit": 1, "step_size": 1}
        provider_tree.update_inventory(nodename, {"MEMORY_MB": record})

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        return {"hypervisor_hostname": nodename}

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
    """Two hosts, their agents, and what Placement holds: `claims`, by consumer. `silent`: what it raises instead."""

    def __init__(self) -> None:
        self.silent: Exception | None = None
        self.agents = FakeAgents()
        self.claims: dict[str, dict[str, Any]] = {VM: claim("h1")}
        self.drivers = {host: self._driver(host) for host in ("h1", "h2")}

    def _driver(self, host: str) -> Driver:
        driver = Driver(SimpleNamespace(reportclient=SimpleNamespace(get_allocs_for_consumer=self._claim_of)))
        driver.host = host
        driver.agents = self.agents
        driver.lost_guests = LostGuests(lambda: self.agents)
        driver.pool_memory = PoolAttachments(lambda: self.agents, sleep=lambda _seconds: None)
        return driver

    def _claim_of(self, _context: Any, consumer: str) -> dict[str, Any]:
        if self.silent is not None:
            raise self.silent
        return {"allocations": self.claims.get(consumer, {})}


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


def spawn(driver: Driver, instance: Any, allocations: Any = None) -> Any:
    return driver.spawn("context", instance, "image", [], "password", allocations or claim(driver.host), power_on=True)
