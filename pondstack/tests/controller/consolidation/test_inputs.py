"""The snapshot that consolidation decides from: what of Nova, Placement, the ledger and telemetry is where."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import futurist
import pytest

from pondstack.clients.nova import ComputeService, ServerGroup
from pondstack.clients.placement import Inventory
from pondstack.clients.servers import PlacedServer
from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostState, Reading
from pondstack.controller.consolidation.inputs import Inputs
from pondstack.db.store.host_telemetry import Told
from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.lending import Buffer, Lender, LenderKind
from pondstack.domain.lent_memory import AgedBuffer, LentMemory
from pondstack.domain.live_move import SWAP_STAYS
from pondstack.domain.rack import HostReport, RackView
from pondstack.domain.states import SliceState

VM = str(uuid4())
SETTINGS = Settings()


class World:
    """Two hosts and one server, as each source tells of them; a test changes what it is about."""

    def __init__(self) -> None:
        self.services = {name: ComputeService(f"id-{name}", name, True, "", True) for name in ("a", "b")}
        self.server = PlacedServer(VM, "a", "", True)
        self.inventory = {"VCPU": Inventory(10, 1, 1, 1, 10, 4.0), "MEMORY_MB": Inventory(1000, 100, 1, 1, 1000, 1.5)}
        self.claims: dict[str, Any] = {VM: {"VCPU": 2, "MEMORY_MB": 512}, "other": {"MEMORY_MB": 88}}
        load = [Told(5.0, 120.0, "measured"), Told(7.0, 60.0, "measured")]
        amounts = {"cpus": 8.0, "memory_mib": 1000.0, "free_mib": 400.0}
        self.told = {
            "a": {"load_percent": load, **{key: [Told(value, 60.0, "measured")] for key, value in amounts.items()}}
        }
        self.guest = {"used_cpus": Told(0.5, 30.0, "measured")}
        self.reports = {name: HostReport(name, True, "", None, 1.0) for name in ("a", "b")}
        self.lent = LentMemory()
        self.groups: list[ServerGroup] = []

    def read(self) -> tuple[Any, Any]:
        nova = SimpleNamespace(
            compute_services=lambda: list(self.services.values()),
            placed=lambda: [self.server],
            server_groups=lambda: self.groups,
        )
        placement = SimpleNamespace(
            host_provider=lambda name: name if name == "a" else None,
            inventories=lambda _provider: self.inventory,
            allocations_of=lambda _provider: self.claims,
        )
        telemetry = SimpleNamespace(hosts=lambda: self.told, guests=lambda _metrics, _seconds: {VM: self.guest})
        history = SimpleNamespace(complete_since=lambda: None)
        rack = RackView(hosts=self.reports, lent=self.lent)
        sources: Any = (nova, placement, telemetry, lambda: rack, history, futurist.SynchronousExecutor())
        snapshot, summary = Inputs(*sources).read()
        self.host, self.vm = snapshot.hosts["a"], snapshot.servers[0]
        return snapshot, summary


@pytest.fixture
def world() -> World:
    return World()


def test_a_host_is_what_its_sources_say(world):
    snapshot, summary = world.read()
    host = world.host
    assert (host.state, host.cpus, host.load, host.load_age_seconds) == (HostState.AWAKE, 8.0, (5.0, 7.0), 60.0)
    assert (host.memory_mib, host.free_mib) == (Reading(1000.0, 60.0), Reading(400.0, 60.0))
    assert host.capacity == {"VCPU": 36, "MEMORY_MB": 1350}
    assert host.used == {"VCPU": 2, "MEMORY_MB": 600}
    assert snapshot.hosts["b"].capacity is None
    assert snapshot.hosts["b"].load == ()
    assert summary["oldest_load_seconds"] == 60.0
    assert (summary["hosts"], summary["servers"], summary["sources"]) == (2, 1, ["measured"])


def test_a_load_that_is_played_is_told_of(world):
    world.told["a"]["load_percent"] = [Told(7.0, 60.0, "synthetic")]
    assert world.read()[1]["sources"] == ["measured", "synthetic"]


def test_a_server_goes_to_hypervisors_of_its_own_type_only(world):
    kinds = {"a": "QEMU", "b": "fake", "c": "QEMU"}
    world.services = {
        name: ComputeService(f"id-{name}", name, True, "", True, hypervisor_type=kind) for name, kind in kinds.items()
    }
    assert world.read()[0].candidates == {VM: frozenset({"a", "c"})}
    world.services["b"] = replace(world.services["b"], hypervisor_type="QEMU")
    assert world.read()[0].candidates == {}, "any: all are of one type"


def test_a_server_is_too(world):
    world.read()
    assert (world.vm.claim, world.vm.local_mib) == ({"VCPU": 2, "MEMORY_MB": 512}, 512)
    assert (world.vm.used_cpus, world.vm.working_set_mib) == (Reading(0.5, 30.0), None)
    assert (world.vm.extendable, world.vm.fixed) == (False, "")


def test_a_pager_makes_a_server_extendable_and_its_hot_memory_is_the_working_set(world):
    world.guest["resident_mib"] = Told(300.0, 10.0, "measured")
    world.read()
    assert (world.vm.extendable, world.vm.working_set_mib) == (True, Reading(300.0, 10.0))
    world.guest["hot_mib"] = Told(100.0, 900.0, "measured")
    world.read()
    assert world.vm.working_set_mib == Reading(100.0, 900.0)


@pytest.mark.parametrize(
    ("server", "fixed"),
    [
        (PlacedServer(VM, "a", "rebooting", True), "rebooting"),
        (PlacedServer(VM, "a", "", False), "it is not running"),
        (PlacedServer("unclaimed", "a", "", True), "Placement has no claim of it on its host"),
        (PlacedServer(VM, "a", "", True, specs={"pond:swap_mb": "512"}), SWAP_STAYS),
    ],
)
def test_servers_that_stay(world, server, fixed):
    world.server = server
    world.read()
    assert world.vm.fixed == fixed


@pytest.mark.parametrize(
    ("service", "closed"),
    [
        (ComputeService("id", "a", False, "a disk", True), "its compute service is disabled: a disk"),
        (ComputeService("id", "a", True, "", False), "its compute service is down"),
    ],
)
def test_hosts_that_nova_does_not_use_take_no_part(world, service, closed):
    world.services["a"] = service
    world.read()
    assert (world.host.state, world.host.closed) == (HostState.CLOSED, closed)


def test_nor_those_that_are_fenced_or_have_no_agent(world):
    world.reports["a"] = HostReport("a", True, "", None, 1.0, fenced="it burns")
    world.read()
    assert world.host.closed == "it is fenced: it burns"
    del world.reports["a"]
    world.read()
    assert world.host.closed == "its agent has never reported"


def test_a_host_that_sleeps_may_be_woken_and_what_is_borrowed_of_it_counts(world):
    world.reports["a"] = replace(world.reports["a"], sleep=HostSleep("u", "a", "frozen", SleepState.ASLEEP))
    world.services["a"] = ComputeService("id", "a", False, "lending memory", False)
    lender = Lender("a", "life", LenderKind.ZOMBIE)
    lent = [Buffer("a", "life", 0, state=SliceState.ONLINE, host="b"), Buffer("a", "life", 1)]
    world.lent = LentMemory({"a": lender}, tuple(AgedBuffer(item, 1.0) for item in lent))
    world.read()
    assert (world.host.state, world.host.lent_mib) == (HostState.ASLEEP, 64)
    world.reports["a"] = replace(world.reports["a"], sleep=HostSleep("u", "a", "frozen", SleepState.WAKING))
    world.read()
    assert world.host.state is HostState.CLOSED
    assert "waking" in world.host.closed


def test_groups_that_nova_enforces_count_and_those_that_it_prefers_do_not(world):
    others = frozenset({VM, "other"})
    world.groups = [ServerGroup("g1", "soft-affinity", others), ServerGroup("g2", "anti-affinity", others)]
    snapshot, _ = world.read()
    assert {member: (group.uuid, group.together) for member, group in snapshot.groups.items()} == {
        VM: ("g2", False),
        "other": ("g2", False),
    }


def test_traits_and_providers_are_those_of_nova_and_placement(world):
    world.server = PlacedServer(VM, "a", "", True, ("CUSTOM_FAST",))
    world.read()
    assert (world.vm.traits, world.host.provider_uuid) == (("CUSTOM_FAST",), "a")


def test_a_host_with_a_server_that_cannot_be_moved_is_not_emptied_and_the_plan_says_why(world):
    world.services["b"] = ComputeService("id-b", "b", True, "", True)
    world.server = PlacedServer(VM, "a", "", True, specs={"pond:swap_mb": "512"})
    snapshot, _ = world.read()
    busy = replace(snapshot.hosts["a"], name="b", load=(60.0,), free_mib=Reading(900.0, 1.0), used={})
    both = replace(snapshot, hosts={"a": snapshot.hosts["a"], "b": busy})
    assert decide(both, SETTINGS).left_out["a"] == f"server {VM} cannot be moved: {SWAP_STAYS}"
    free = replace(both, servers=(replace(both.servers[0], fixed=""),))
    assert "a" in {action.host for action in decide(free, SETTINGS).actions}
