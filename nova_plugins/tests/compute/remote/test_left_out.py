"""A guest moves live, and its slices stay where they are: what both nova-computes ask of agents, and tell QEMU."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import nova.conf
import pytest
from nova import exception, objects
from nova.compute import power_state, vm_states

from nova_plugins.tests.compute.remote.test_remote_guests import REMOTE, Nova
from nova_plugins.tests.compute.virt_rig import POND, VM, Driver, Rack, claim, guest, h1, h2, rack, spawn
from pondstack.domain import errors
from pondstack.domain.model import Extent
from pondstack_nova import stats
from pondstack_nova.compute import slice_arrival
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable
from pondstack_nova.compute.remote import monitor
from pondstack_nova.compute.remote.left_out import LeftOutMemory
from tests.fixtures.fake_agents import devdax_backing, file_backing, node_backing

__all__ = ["h1", "h2", "rack"]

CONF = nova.conf.CONF


# The destination.


def pre(driver: Driver, takes_over: bool = True) -> Any:
    data = objects.LibvirtLiveMigrateData()
    with patch.object(type(driver), "_pond_takes_over", lambda *_: takes_over):
        return driver.pre_live_migration("context", guest(), {}, [], "disks", data)


@pytest.fixture
def moving(rack: Rack, h1: Driver) -> Rack:
    spawn(h1, guest())
    rack.claims[VM] = claim("h2")
    return rack


def test_the_slices_stay_and_the_guest_is_awaited(moving: Rack, h1: Driver, h2: Driver) -> None:
    before = moving.agents.held["h1", VM].extents
    pre(h2)
    assert moving.agents.attaches[-1]["source"] == "h1"
    assert moving.agents.held["h2", VM].extents == before
    assert moving.agents.held["h1", VM].heir == "h2"
    assert moving.agents.awaited == [("h2", VM)]
    h1.post_live_migration("context", guest())
    assert moving.agents.hosts_of(VM) == {"h2": 1024}


def test_one_that_cannot_be_awaited_does_not_move(moving: Rack, h2: Driver) -> None:
    moving.agents.faults["await"] = [errors.Conflict("it is expected already")]
    with pytest.raises(exception.MigrationPreCheckError):
        pre(h2)
    assert moving.agents.hosts_of(VM) == {"h1": 1024}
    assert not moving.agents.held["h1", VM].heir
    assert h2.seen == []


@pytest.mark.parametrize(("takes_over", "hands_over"), [(False, True), (True, False)])
def test_what_is_copied_is_not_awaited(moving: Rack, h2: Driver, takes_over: bool, hands_over: bool) -> None:
    moving.agents.hands_over = hands_over
    pre(h2, takes_over)
    assert moving.agents.awaited == []
    assert moving.agents.held["h2", VM].extents != moving.agents.held["h1", VM].extents


class Ours(LeftOutMemory, Nova):
    """The mixin over what stands for LibvirtDriver. `held`: what the agent says that the guest has here."""

    held: Any = None
    xml: str

    def _pond_node(self) -> tuple[str, str]:
        return "h1-rp", "h1"


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Ours:
    made = Ours(None)

    def find(host: str, uuid: str) -> Any:
        assert (host, uuid) == ("h1", VM)
        if isinstance(made.held, Exception):
            raise made.held
        return made.held

    made.pool_memory = SimpleNamespace(find=find)  # type: ignore[assignment]
    monkeypatch.setattr(slice_arrival, "take_up", lambda _pool, host, uuid: made.steps.append(f"take up {host} {uuid}"))
    monkeypatch.setattr(monitor, "ignore_shared", lambda _guest, *, on: made.steps.append(f"leave out: {on}"))
    made.xml = xml()
    return made


def xml(pool: str = "memAccess='shared'", local: str = "", backing: str = "") -> str:
    cells = f"<cell id='0' cpus='0' {local} memory='2097152'/><cell id='1' {pool} memory='1048576'/>"
    return f"<domain>{backing}<cpu><numa>{cells}</numa></cpu></domain>"


def source(backing: Any = file_backing) -> Any:
    return SimpleNamespace(backings=(backing("h1", Extent(0, 1)),))


def held(backing: Any = file_backing, **more: Any) -> Any:
    """Return what an agent says that a guest has."""
    return SimpleNamespace(**{"heir": "", "handed": False, "backings": (backing("h1", Extent(0, 1)),), **more})


@pytest.mark.parametrize(
    ("specs", "backing", "told", "takes_over"),
    [
        (POND, file_backing, {stats.LEAVES_OUT: "1"}, True),
        (POND, devdax_backing, {stats.LEAVES_OUT: "1"}, True),
        (POND, devdax_backing, {}, False),
        (POND, file_backing, {}, False),
        (POND, file_backing, None, False),
        (POND, node_backing({"h1": 2}), {stats.LEAVES_OUT: "1"}, False),
        (REMOTE, file_backing, {stats.LEAVES_OUT: "1"}, False),
    ],
)
def test_both_ends_have_to_be_able_to(ours: Ours, specs: Any, backing: Any, told: Any, takes_over: bool) -> None:
    instance = guest(specs, host="compute1")

    def node(context: str, host: str, name: str) -> Any:
        assert (context, host, name) == ("context", "compute1", "h1")
        return SimpleNamespace(stats=told)

    with patch.object(objects.ComputeNode, "get_by_host_and_nodename", node):
        assert ours._pond_takes_over("context", instance, source(backing)) is takes_over


ARRIVED = ["take up h1 " + VM, "resume", "post at destination"]


@pytest.mark.parametrize(
    ("state", "backing", "more", "steps"),
    [
        (power_state.PAUSED, devdax_backing, {"handed": True}, ARRIVED),
        (power_state.PAUSED, devdax_backing, {"handed": False}, ARRIVED[2:]),  # its owner paused it
        (power_state.PAUSED, file_backing, {"handed": True}, ARRIVED[2:]),
        (power_state.RUNNING, devdax_backing, {"handed": True}, ARRIVED[2:]),
    ],
)
def test_it_runs_once_the_slices_are_this_hosts_alone(
    ours: Ours, state: int, backing: Any, more: Any, steps: list[str]
) -> None:
    ours.states, ours.held = [state], held(backing, **more)
    ours.post_live_migration_at_destination("context", guest(vm_state=vm_states.ACTIVE), [])
    assert ours.steps == steps


def test_one_that_its_owner_has_paused_stays_so(ours: Ours) -> None:
    ours.states, ours.held = [power_state.PAUSED], held(devdax_backing, handed=True)
    ours.post_live_migration_at_destination("context", guest(vm_state=vm_states.PAUSED), [])
    assert ours.steps == [ARRIVED[0], ARRIVED[2]]


def test_one_that_may_not_run_stays_paused(ours: Ours, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_pool: Any, _host: str, _uuid: str) -> None:
        raise PoolMemoryUnavailable(reason="its former host has not let go")

    monkeypatch.setattr(slice_arrival, "take_up", never)
    ours.states, ours.held = [power_state.PAUSED], held(devdax_backing, handed=True)
    with pytest.raises(PoolMemoryUnavailable):
        ours.post_live_migration_at_destination("context", guest(vm_state=vm_states.ACTIVE), [])
    assert ours.steps == []


# The source.


@pytest.mark.parametrize(
    ("heir", "xml_", "steps"),
    [
        ("h2", xml(), ["leave out: True"]),
        ("", xml(), ["leave out: False"]),
        ("h2", xml(pool=""), []),
        ("h2", "<domain/>", []),
    ],
)
def test_qemu_leaves_out_what_is_handed_over_and_nothing_else(ours: Ours, heir: str, xml_: str, steps: Any) -> None:
    ours.xml, ours.held = xml_, held(heir=heir)
    assert not ours._pond_leave_out(ours.guest(), guest()), "a file has one cache: nothing has to be written back"
    assert ours.steps == steps


@pytest.mark.parametrize(("heir", "waits"), [("h2", True), ("", False)])
def test_a_guest_whose_slices_are_in_cpu_caches_waits_at_the_destination(ours: Ours, heir: str, waits: bool) -> None:
    ours.held = held(devdax_backing, heir=heir)
    assert ours._pond_leave_out(ours.guest(), guest()) is waits
    assert ours.steps == [f"leave out: {waits}"]


def test_nobody_moves_while_the_agent_does_not_say_whether_they_are_handed_over(ours: Ours) -> None:
    """A copy would put stale pages over slices that are."""
    ours.held = PoolMemoryUnavailable(reason="silent")
    with pytest.raises(PoolMemoryUnavailable):
        ours._pond_leave_out(ours.guest(), guest())
    assert ours.steps == []


@pytest.mark.parametrize(
    "shared",
    [xml(local="memAccess='shared'"), xml(backing="<memoryBacking><access mode='shared'/></memoryBacking>")],
)
def test_what_has_to_be_copied_is_not_left_out(ours: Ours, shared: str) -> None:
    ours.xml, ours.held = shared, held(heir="h2")
    with pytest.raises(exception.MigrationError, match="more of it is shared"):
        ours._pond_leave_out(ours.guest(), guest())
    assert ours.steps == []


def test_slices_beside_remote_memory_are_not_left_out(ours: Ours) -> None:
    ours.held = held()
    with pytest.raises(exception.MigrationError, match="slices have to be copied"):
        ours._pond_leave_out(ours.guest(), guest(REMOTE))
    ours.xml = xml(pool="")
    ours._pond_leave_out(ours.guest(), guest(REMOTE))
    assert ours.steps == ["leave out: True"]


def test_afterwards_nothing_is_left_out(ours: Ours) -> None:
    ours.rollback_live_migration_at_source("context", guest(), "data")
    ours.suspend("context", guest())
    assert ours.steps == ["leave out: False", "rollback", "leave out: False", "suspend"]


def test_the_agent_is_asked_in_vain() -> None:
    def await_guest(_host: str, *, consumer_uuid: str) -> None:
        raise errors.NotFound(f"nothing of {consumer_uuid}")

    agents = SimpleNamespace(await_guest=await_guest)
    found = PoolAttachments(lambda: agents, sleep=lambda _seconds: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(PoolMemoryUnavailable):
        found.await_guest("h2", VM)
