"""A leader that was paused wakes after the next one took over: every place where it could still do harm refuses it.

The same for devices alone is in pondstack/tests/devices/test_pauses.py, for agents in
agent/tests/pool/test_endpoint.py, for Placement in pondstack/tests/clients/test_placement.py.
"""

from uuid import uuid4

import pytest

from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import NotLeader, StaleEpoch
from pondstack.domain.sizing import Split
from pondstack.domain.states import SliceState
from pondstack.ledger.store import RememberedSplit
from pondstack.tests.controller.conftest import POOL, call, make_rack

MIB = 2**20


@pytest.fixture
def succeed(database, device, rack):
    """Have another controller take over, as it is promoted: the devices learn of its epoch first."""

    def take_over():
        newer = make_rack(database, device.path, None)
        newer.agents = rack.agents
        assert newer.ledger.epoch > rack.ledger.epoch
        return newer

    return take_over


def asleep_in(monkeypatch, method: str, meanwhile) -> None:
    """Have the next command to a device sleep at its start while `meanwhile` happens."""
    real = getattr(EmulatedDevice, method)

    def paused(self, *arguments, **named):
        monkeypatch.setattr(EmulatedDevice, method, real)
        meanwhile()
        return real(self, *arguments, **named)

    monkeypatch.setattr(EmulatedDevice, method, paused)


def write(device, index: int) -> None:
    with open(device.path / "memory", "rb+") as memory:
        memory.seek(index * 1024 * MIB)
        memory.write(b"guest")


def content(device, index: int) -> bytes:
    with open(device.path / "memory", "rb") as memory:
        memory.seek(index * 1024 * MIB)
        return memory.read(5)


def test_it_writes_nothing_into_the_ledger(rack, succeed):
    grant = rack.assign()
    newer = succeed()
    before = newer.reader.rack().ledger()
    uuid = grant.allocation_uuid
    writes = [
        lambda: rack.assign(),
        lambda: call(rack.endpoint.acknowledge, operation_id=str(uuid4()), allocation_uuid=uuid, host="h1"),
        lambda: call(rack.endpoint.release, operation_id=str(uuid4()), allocation_uuid=uuid, host="h1"),
        lambda: call(rack.endpoint.release, operation_id="gone", allocation_uuid=str(uuid4()), host="h1"),
        lambda: rack.beat("h1"),
        lambda: call(rack.endpoint.set_host, name="h1", enabled=False, reason="r", generation=None),
        lambda: rack.ledger.slices.begin_release(uuid, "unclaimed"),
        lambda: rack.ledger.slices.quarantine_allocation(uuid, Cause.AGENT_LOST, "gone"),
        lambda: rack.ledger.slices.quarantine(POOL, [7], Cause.PERMISSION_LEFT, "gone"),
        lambda: rack.ledger.slices.audit(POOL, [0], "free"),
        lambda: rack.ledger.slices.sanitized(POOL, [0]),
        lambda: rack.ledger.slices.mark_claims([], [uuid]),
        lambda: rack.ledger.remember_splits([RememberedSplit(str(uuid4()), "f", Split(1, 2, "static", 1.0, "r"))]),
        lambda: rack.ledger.hosts.set_provider("h1", str(uuid4())),
        lambda: rack.ledger.prune(-1),
        lambda: rack.reconcile(),
    ]
    for write_late in writes:
        with pytest.raises(NotLeader):
            write_late()
    assert newer.reader.rack().ledger() == before


def test_asleep_between_the_ledger_and_the_device(rack, succeed, device, monkeypatch):
    """Its grant was committed; the client has repeated the operation, and the new leader has let the host in."""
    operation_id, consumer = str(uuid4()), str(uuid4())
    granted = []

    def meanwhile():
        newer = succeed()
        granted.append(newer.assign(operation_id=operation_id, consumer=consumer))

    asleep_in(monkeypatch, "grant", meanwhile)
    with pytest.raises(NotLeader):  # it wants to undo the allocation, and may not
        rack.assign(operation_id=operation_id, consumer=consumer)
    (grant,) = granted
    assert {entry.tag for entry in device.permissions().values()} == {grant.allocation_uuid}
    assert {entry.epoch for entry in device.permissions().values()} == {grant.epoch}
    assert rack.reader.allocation(grant.allocation_uuid).state == "assigning"


def test_asleep_between_the_ledger_and_the_device_while_the_allocation_is_released(rack, succeed, device, monkeypatch):
    """Its late command would let a host in that gave the slices back: they are another's by now."""
    taken = []

    def meanwhile():
        newer = succeed()
        allocation = newer.reader.allocations()[0]
        newer.ledger.slices.release(str(uuid4()), allocation.uuid, allocation.host)
        newer.sanitizer.drain()
        taken.append(newer.assign(host="h2", slices=8))

    asleep_in(monkeypatch, "grant", meanwhile)
    with pytest.raises(NotLeader):
        rack.assign(host="h1")
    assert {(entry.host, entry.tag) for entry in device.permissions().values()} == {("h2", taken[0].allocation_uuid)}


@pytest.mark.parametrize("moment", ["permissions", "revoke", "sanitize"])
def test_a_sanitiser_asleep_zeroes_nothing_that_a_guest_has(rack, succeed, device, monkeypatch, moment):
    """The new leader has zeroed the slice, granted it to another host, and a guest has written to it."""
    grant = rack.online(slices=2)
    rack.release(grant.allocation_uuid)

    def meanwhile():
        newer = succeed()
        newer.sanitizer.drain()
        newer.assign(host="h2", slices=8)
        for index in range(8):
            write(device, index)

    asleep_in(monkeypatch, moment, meanwhile)
    with pytest.raises((StaleEpoch, NotLeader)):
        rack.sanitizer.drain()
    assert all(content(device, index) == b"guest" for index in range(8))
    assert {entry.host for entry in device.permissions().values()} == {"h2"}
    assert rack.count(SliceState.ASSIGNING) == 8


def test_a_sanitiser_asleep_before_it_tells_the_ledger(rack, succeed, monkeypatch):
    """What it has zeroed may be a guest's by now: its word does not make it free."""
    grant = rack.online(slices=2)
    rack.release(grant.allocation_uuid)
    tell = rack.ledger.slices.sanitized

    def paused(*arguments):
        newer = succeed()
        newer.sanitizer.drain()
        newer.assign(host="h2", slices=8)
        return tell(*arguments)

    monkeypatch.setattr(rack.ledger.slices, "sanitized", paused)
    with pytest.raises(NotLeader):
        rack.sanitizer.drain()
    assert rack.count(SliceState.ASSIGNING) == 8


def test_a_device_that_failed_at_the_promotion_learns_of_the_epoch_before_it_is_used(database, device, rack):
    """It is not registered until it answers, and its first command is the epoch."""
    away = device.path.with_name("away")
    device.path.rename(away)
    newer = make_rack(database, device.path, None)
    away.rename(device.path)
    device.grant("h1", [], tag="t", epoch=rack.ledger.epoch)  # nobody has told it yet
    newer.devices.register()
    with pytest.raises(StaleEpoch):
        device.grant("h1", [], tag="t", epoch=rack.ledger.epoch)
