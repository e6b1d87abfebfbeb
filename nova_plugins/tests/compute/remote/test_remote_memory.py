"""Remote memory of guests on their hosts: borrowed before they are made, given back when they leave."""

from typing import Any

import oslo_messaging
import pytest
from nova import exception
from nova.compute import task_states

from nova_plugins.tests.compute.virt_rig import POOL, VM, Driver, Rack, guest, h1, h2, rack, spawn
from pondstack.domain.errors import BufferShortage, Conflict, HostUnusable, Unavailable, Unclaimed
from pondstack_nova.compute.remote.memory import RemoteMemoryUnavailable

__all__ = ["h1", "h2", "rack"]

REMOTE = {"pond:remote_mb": "1024"}
BOTH = {"pond:policy": "fixed", "pond:pool_mb": "1024", "pond:remote_mb": "1024"}
LENDERS = {"lenders-rp": {"resources": {"CUSTOM_POND_REMOTE_MB": 1024}}}


def claim(*hosts: str, local: int = 3072) -> dict[str, Any]:
    """Return allocations of a guest with remote memory, and with pool memory where that leaves some."""
    own = {"MEMORY_MB": local, "CUSTOM_POND_MIRROR_MB": local + 1024}
    held = {f"{host}-rp": {"resources": dict(own)} for host in hosts} | LENDERS
    pool = 3072 - local
    return held | ({POOL: {"resources": {"CUSTOM_POND_MEMORY_MB": pool}}} if pool else {})


@pytest.fixture
def with_remote(rack: Rack) -> Rack:
    """Have Placement hold remote memory for the guest on the first host."""
    rack.claims[VM] = claim("h1")
    return rack


def make(driver: Driver, specs: dict[str, str] | None = None, **more: Any) -> Any:
    """Build a guest on a host; returns it."""
    instance = guest(REMOTE if specs is None else specs, **more)
    spawn(driver, instance, claim(driver.host, local=2048 if specs == BOTH else 3072))
    return instance


def test_it_is_there_before_the_guest_and_goes_after_it(with_remote: Rack, h1: Driver) -> None:
    agents = with_remote.agents
    instance = make(h1)
    assert agents.borrowed == {("h1", VM): 1024}
    assert not agents.held, "no pool memory"
    h1.destroy("context", instance)
    assert not agents.borrowed
    assert h1.seen == [("spawn", 0), ("destroy", 0)]


def test_beside_pool_memory(with_remote: Rack, h1: Driver) -> None:
    with_remote.claims[VM] = claim("h1", local=2048)
    instance = make(h1, BOTH)
    assert with_remote.agents.hosts_of(VM) == {"h1": 1024}
    assert with_remote.agents.borrowed == {("h1", VM): 1024}
    assert h1._pond_shares(instance).local_mib == 2048
    h1.destroy("context", instance)
    assert not with_remote.agents.held
    assert not with_remote.agents.borrowed


def test_a_part_that_is_on_disk_alone(with_remote: Rack, h1: Driver) -> None:
    """It is claimed by nobody and borrowed from nobody, and no pool memory for that."""
    with_remote.claims[VM] = claim("h1", local=2560) | {POOL: {"resources": {}}}
    instance = guest(REMOTE | {"pond:disk_mb": "512"})
    spawn(h1, instance, with_remote.claims[VM])
    assert with_remote.agents.borrowed == {("h1", VM): 1024}
    assert not with_remote.agents.held
    found = h1._pond_shares(instance)
    assert (found.local_mib, found.disk_mib, found.node_mib) == (2560, 512, 4096)


def test_a_reboot_and_a_rebuild_keep_it(with_remote: Rack, h1: Driver) -> None:
    agents, instance = with_remote.agents, make(h1)
    h1.reboot(instance)
    instance.task_state = task_states.REBUILDING
    with pytest.raises(NotImplementedError):
        h1.rebuild("context", instance)
    h1.destroy("context", instance)
    make(h1)
    assert agents.borrowed == {("h1", VM): 1024}
    assert [call for call in agents.log if "_" in call] == ["get_remote h1", "alloc_ext h1", *["get_remote h1"] * 2]


def test_a_guest_that_lost_it_gets_it_anew(with_remote: Rack, h1: Driver) -> None:
    """What the controller asked back, as unclaimed, is borrowed at the next start."""
    instance = make(h1)
    with_remote.agents.borrowed.clear()
    h1.reboot(instance)
    assert with_remote.agents.borrowed == {("h1", VM): 1024}


def test_another_amount_replaces_it(with_remote: Rack, h1: Driver) -> None:
    """A resize on the same host; what goes back may still be on its way."""
    agents = with_remote.agents
    agents.borrowed["h1", VM] = 512
    agents.faults["alloc_ext"] = [Conflict("it is being released; try again later")] * 3
    make(h1)
    assert agents.borrowed == {("h1", VM): 1024}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BufferShortage("512 MiB short, host-7"), "there is too little lent memory (pondstack.buffer_shortage)"),
        (Unclaimed("claims 0"), "it is not claimed in Placement (pondstack.unclaimed)"),
        (HostUnusable("no data plane"), "the host cannot use it (pondstack.host_unusable)"),
    ],
)
def test_what_cannot_be_borrowed_fails_the_build(with_remote: Rack, h1: Driver, error: Exception, told: str) -> None:
    """Nova tries another host; pool memory goes back, and the tenant reads nothing of hosts."""
    with_remote.claims[VM] = claim("h1", local=2048)
    with_remote.agents.faults["alloc_ext"] = [error]
    with pytest.raises(RemoteMemoryUnavailable) as refusal:
        make(h1, BOTH)
    assert isinstance(refusal.value, exception.ComputeResourcesUnavailable)
    assert str(refusal.value) == f"Remote memory is not available: {told}"
    assert not with_remote.agents.held
    assert h1.seen == []


def test_a_build_that_fails_gives_it_back(with_remote: Rack, h1: Driver) -> None:
    h1.breaks.add("spawn")
    with pytest.raises(exception.InternalError):
        make(h1)
    assert not with_remote.agents.borrowed


def test_a_start_that_fails_keeps_it(with_remote: Rack, h1: Driver) -> None:
    """It was there before; the guest stays claimed here."""
    instance = make(h1)
    h1.breaks.add("made anew")
    with pytest.raises(exception.InternalError):
        h1.reboot(instance)
    assert with_remote.agents.borrowed == {("h1", VM): 1024}


def test_an_agent_whose_controller_is_away_is_asked_again(with_remote: Rack, h1: Driver) -> None:
    with_remote.agents.faults["alloc_ext"] = [Unavailable("no controller")] * 3
    make(h1)
    assert with_remote.agents.borrowed == {("h1", VM): 1024}


def test_the_end_of_a_guest_does_not_wait_for_a_silent_agent(with_remote: Rack, h1: Driver) -> None:
    """And asks again while the data plane has not noticed yet that its process ended."""
    instance = make(h1)
    with_remote.agents.faults["release_remote"] = [Conflict("its process is served")] * 2
    h1.destroy("context", instance)
    assert not with_remote.agents.borrowed
    instance = make(h1)
    with_remote.agents.faults["release_remote"] = [oslo_messaging.MessagingTimeout("gone")]
    h1.destroy("context", instance)
    assert with_remote.agents.borrowed == {("h1", VM): 1024}, "the reconciler has it back"


def test_a_cold_move_gives_it_back_at_the_source(with_remote: Rack, h1: Driver, h2: Driver) -> None:
    agents, instance = with_remote.agents, make(h1)
    h1.migrate_disk_and_power_off("context", instance)
    assert not agents.borrowed
    h2.finish_migration("context", "migration", instance, {}, [], "image", False, claim("h2"))
    assert agents.borrowed == {("h2", VM): 1024}
    h2.destroy("context", instance)
    with_remote.claims[VM] = claim("h1")
    h1.finish_revert_migration("context", instance, [], None)
    assert agents.borrowed == {("h1", VM): 1024}


def test_it_moves_live(with_remote: Rack, h1: Driver, h2: Driver) -> None:
    """Borrowed there, handed over, and given back here once it is there."""
    instance = make(h1)
    h1._pond_extend(instance)
    with_remote.claims[VM] = claim("h2")
    h2.pre_live_migration("context", instance, "data")
    agents = with_remote.agents
    assert agents.borrowed == {("h1", VM): 1024, ("h2", VM): 1024}
    assert agents.offered == {("h1", VM): "public key of h2"}
    assert agents.sources == {("h1", VM): "", ("h2", VM): "h1"}, "of what it has there"
    assert agents.served["h2", VM] == agents.served["h1", VM] == (4096, 3072)
    h1.post_live_migration("context", instance)
    assert agents.borrowed == {("h2", VM): 1024}


def test_a_live_move_that_fails(with_remote: Rack, h1: Driver, h2: Driver) -> None:
    """It goes on here, and there is nothing left there."""
    instance = make(h1)
    h1._pond_extend(instance)
    with_remote.claims[VM] = claim("h2")
    h2.pre_live_migration("context", instance, "data")
    agents = with_remote.agents
    agents.faults["take_back"] = [Unavailable("pages are still on their way")]
    h1.rollback_live_migration_at_source("context", instance, "data")
    h2.rollback_live_migration_at_destination("context", instance)
    assert not agents.offered
    assert agents.borrowed == {("h1", VM): 1024}


@pytest.mark.parametrize("verb", ["alloc_ext", "expect_guest", "hand_over", "receive_guest"])
def test_a_live_move_that_cannot_begin(with_remote: Rack, h1: Driver, h2: Driver, verb: str) -> None:
    """Before libvirt begins, and nothing is left at the destination."""
    instance = make(h1)
    h1._pond_extend(instance)
    with_remote.claims[VM] = claim("h2")
    with_remote.agents.faults[verb] = [HostUnusable("not now")]
    with pytest.raises(exception.MigrationPreCheckError):
        h2.pre_live_migration("context", instance, "data")
    assert with_remote.agents.borrowed == {("h1", VM): 1024}
    assert ("pre_live_migration", 0) not in h2.seen


def test_others_ask_no_agent_for_it(rack: Rack, h1: Driver) -> None:
    instance = guest()
    spawn(h1, instance)
    h1.reboot(instance)
    h1.destroy("context", instance)
    assert not [call for call in rack.agents.log if "remote" in call or "alloc" in call]
