"""A failed device and a fenced host, end to end: real ledger, emulated devices, agents as plain objects."""

import mmap

import pytest

from pondstack.controller.leader.failure_notifier import FailureNotifier
from pondstack.controller.pool.devices import DeviceSpec
from pondstack.db.store import SQL
from pondstack.devices.emulated import create_device
from pondstack.devices.identity import pool_uuid
from pondstack.domain.causes import Cause
from pondstack.domain.errors import (
    Conflict,
    DeviceFailed,
    GenerationConflict,
    HostUnusable,
    NotLeader,
    PoolShortage,
    Unavailable,
)
from pondstack.ledger.ledger import Ledger
from pondstack.tests.controller.conftest import POOL, call, make_rack
from tests.fixtures import lead

AT_ONCE = {"device_failed_seconds": 0.0}
OTHER = pool_uuid("S2")
MIB = 2**20


@pytest.fixture
def two(database, device, tmp_path):
    """A rack of two devices, both reached by both hosts; `broken()` and `mended()` are the first device's."""
    other = create_device(tmp_path / "pool1", 4, serial="S2")
    rack = make_rack(database, device.path, None, more=[DeviceSpec("pool1", "emulated", str(other.path))])
    for agent in rack.agents.values():
        agent.pools = (POOL, OTHER)
    rack.beat()
    rack.other = other
    rack.broken = lambda: (device.path / "device.json").rename(device.path / "gone")
    rack.mended = lambda: (device.path / "gone").rename(device.path / "device.json")
    return rack


def states(rack, pool=POOL):
    return {state: count for state, count in rack.reader.pool(pool).slices.items() if count}


# A device


def test_a_failed_device_concerns_its_own_guests_only(two):
    mine, foreign = two.online("h1"), two.online("h1", pool_uuid=OTHER)
    two.beat()
    before = two.reader.rack().allocations[foreign.allocation_uuid].item
    two.broken()
    codes = two.reconcile(**AT_ONCE)
    assert {"pool_failed", "memory_failed", "device_failed"} <= set(codes)
    assert codes.count("memory_failed") == 1
    assert states(two) == {"quarantined": 8}
    assert states(two, OTHER) == {"online": 2, "free": 2}
    assert two.reader.rack().allocations[foreign.allocation_uuid].item == before
    assert [(event.instance_uuid, event.host, event.pool_name) for event in two.told] == [
        (mine.consumer_uuid, "h1", "pool0")
    ]
    assert [item.consumer_uuid for item in two.reader.allocations(pool_uuid=POOL)] == [mine.consumer_uuid]


def test_it_is_told_once_however_often_it_is_found(two):
    two.online("h1")
    two.beat()
    two.broken()
    for _ in range(3):
        codes = two.reconcile(**AT_ONCE)
    assert len(two.told) == 1
    assert "memory_failed" in codes  # and named for as long as it lasts


def test_a_short_silence_is_no_failure(two):
    two.online("h1")
    two.beat()
    two.broken()
    assert two.reconcile(device_failed_seconds=30.0) == ["pool_failed"]
    two.mended()
    assert two.reconcile(device_failed_seconds=30.0) == []
    assert (states(two), two.told) == ({"online": 2, "free": 6}, [])


def test_a_device_that_comes_back_is_audited_before_its_slices_are_used(two):
    grant = two.online("h1")
    two.beat()
    two.broken()
    two.reconcile(**AT_ONCE)
    two.mended()
    for _ in range(2):
        two.reconcile(**AT_ONCE)
    assert states(two) == {"quarantined": 8}
    with pytest.raises(PoolShortage):
        two.assign("h2")
    audit = call(two.endpoint.audit, repair=True)
    two.sanitizer.drain()
    assert {item["code"] for item in audit["findings"]} >= {"quarantined", "quarantined_waiting"}
    assert states(two) == {"quarantined": 2, "free": 6}  # its guest still runs
    two.release(grant.allocation_uuid)
    two.reconcile(**AT_ONCE)
    assert states(two) == {"quarantined": 2, "free": 6}
    call(two.endpoint.audit, repair=True)
    two.sanitizer.drain()
    assert states(two) == {"free": 8}
    assert len(two.told) == 1


def test_a_second_failure_is_told_too(two):
    two.online("h1")
    two.beat()
    for _ in range(2):
        two.broken()
        two.reconcile(**AT_ONCE)
        two.mended()
        two.reconcile(**AT_ONCE)
    assert len({event.uuid for event in two.told}) == len(two.told) == 2


def test_what_one_leader_did_not_tell_the_next_one_tells(two):
    two.online("h1")
    two.beat()
    two.broken()

    def lost(_event):
        raise Unavailable("killed in between")

    two.notifier = FailureNotifier(two.ledger, lost)
    with pytest.raises(Unavailable):
        two.reconcile(**AT_ONCE)
    later, told = Ledger(two.database, lead(two.database, "next"), store=SQL), []
    FailureNotifier(later, told.append).run()
    FailureNotifier(later, told.append).run()
    assert len(told) == 1
    with pytest.raises(NotLeader):
        two.ledger.failures.mark_sent(told[0])


def test_what_failed_to_be_told_is_told_at_the_next_run(two):
    two.online("h1")
    two.beat()
    two.broken()
    troubles, told = [Unavailable("the database is away")], []

    def send(event):
        if troubles:
            raise troubles.pop()
        told.append(event)

    two.notifier = FailureNotifier(two.ledger, send)
    with pytest.raises(Unavailable):
        two.reconcile(**AT_ONCE)
    two.notifier.run()
    two.notifier.run()
    assert len(told) == 1


# A host


def fence(rack, host="h1", force=True, **named):
    return call(rack.endpoint.fence_host, name=host, reason="it burns", force=force, **named)


def test_a_fence_of_another_generation_is_refused_and_touches_no_device(two, device):
    two.online("h1")
    known, table = two.reader.host("h1").generation, device.permissions()
    with pytest.raises(GenerationConflict):
        fence(two, generation=known + 1)
    assert device.permissions() == table
    assert fence(two, generation=known)["fenced"]
    assert device.permissions() == {}


def test_a_fenced_hosts_memory_goes_to_others_after_its_device_and_the_sanitiser(two, device):
    grant = two.online("h1")
    (device.path / "memory").open("rb+").write(b"secret")
    two.beat()
    assert fence(two) == {"name": "h1", "fenced": True, "pool_mib": 0}
    assert device.permissions() == {}
    assert states(two) == {"sanitizing": 2, "free": 6}
    two.sanitizer.drain()
    assert states(two) == {"free": 8}
    assert two.reader.allocations() == []
    assert (device.path / "memory").open("rb").read(6) == bytes(6)
    other = two.online("h2", slices=8)
    assert {entry.host for entry in device.permissions().values()} == {"h2"}
    assert other.consumer_uuid != grant.consumer_uuid
    with pytest.raises(HostUnusable, match="fenced"):
        two.assign("h1", slices=1, pool_uuid=OTHER)


def test_others_keep_theirs(two, device):
    two.online("h1")
    kept = two.online("h2")
    fence(two)
    assert {entry.tag for entry in device.permissions().values()} == {kept.allocation_uuid}
    assert states(two)["online"] == 2


def test_a_host_that_reports_is_not_fenced_without_force(two):
    two.online("h1")
    with pytest.raises(Conflict, match="not dead"):
        fence(two, force=False)
    assert states(two)["online"] == 2


def test_what_a_device_cannot_confirm_stays_aside(two, device):
    two.online("h1")
    two.online("h1", pool_uuid=OTHER)
    two.broken()
    assert fence(two)["pool_mib"] == 2048
    two.sanitizer.drain()
    assert states(two) == {"quarantined": 2, "free": 6}
    assert states(two, OTHER) == {"free": 4}
    two.mended()
    assert "fence_unconfirmed" in two.reconcile(device_failed_seconds=30.0)
    assert states(two) == {"free": 8}
    assert device.permissions() == {}


def test_while_a_process_maps_a_slice_the_fence_is_not_confirmed(two, device):
    grant = two.online("h1")
    assert grant.extents[0].start == 0
    with (device.path / "memory").open("rb+") as memory, mmap.mmap(memory.fileno(), 1024 * MIB, offset=1024 * MIB):
        assert fence(two)["pool_mib"] == 2048
        two.sanitizer.drain()
        assert states(two) == {"quarantined": 2, "free": 6}
        assert device.permissions() == {}  # nobody gets in anew
        assert "fence_unconfirmed" in two.reconcile()
    two.reconcile()
    assert states(two) == {"free": 8}


def test_a_fenced_host_that_comes_back_drops_what_it_had_and_is_unfenced(two):
    two.online("h1", in_use=False)
    two.beat()
    fence(two)
    two.sanitizer.drain()
    two.beat("h1")  # its agent still has it on its list
    with pytest.raises(Conflict, match="still holds"):
        call(two.endpoint.unfence_host, name="h1")
    assert "fenced_attached" in two.reconcile()
    assert two.agents["h1"].attached == {}
    assert states(two) == {"free": 8}
    two.beat("h1")
    assert call(two.endpoint.unfence_host, name="h1") == {"name": "h1", "fenced": False}
    two.assign("h1")


def test_a_host_of_a_failed_device_is_freed_by_an_operator(two):
    two.online("h1")
    two.beat()
    two.broken()
    two.reconcile(**AT_ONCE)
    fence(two)
    two.mended()
    two.reconcile(**AT_ONCE)
    assert states(two) == {"quarantined": 8}
    call(two.endpoint.audit, repair=True)
    two.sanitizer.drain()
    assert states(two) == {"free": 8}


def test_the_snapshot_says_why_a_host_gets_nothing(two):
    fence(two)
    view = call(two.endpoint.snapshot)
    assert view["unusable_hosts"] == {"h1": "fenced: it burns"}
    assert tuple(view["usable_hosts"]) == ("h2",)


def test_a_regrant_that_comes_late_lets_nobody_in(two, device, monkeypatch):
    """The look at the ledger saw it ONLINE without a permission; until the repair it was set aside."""
    grant = two.online("h1")
    device.revoke([0, 1], tag=grant.allocation_uuid, epoch=two.ledger.epoch)
    real = two.reconciler._confirmed

    def confirmed(look, ask):
        findings = real(look, ask)
        two.ledger.slices.quarantine_allocation(grant.allocation_uuid, Cause.AGENT_LOST, "for the test")
        return findings

    monkeypatch.setattr(two.reconciler, "_confirmed", confirmed)
    assert "permission_missing" in two.reconcile()
    assert device.permissions() == {}


def test_a_failed_device_takes_no_new_guests(two):
    two.broken()
    two.reconcile(**AT_ONCE)
    with pytest.raises(DeviceFailed):
        two.assign("h1")
