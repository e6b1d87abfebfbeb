"""The release pipeline over a device that must ask the host: what it keeps waits, and holds up nothing else."""

from uuid import uuid4

import pytest

from pondstack.devices import emulated_files as files
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import InUse
from pondstack.domain.states import SliceState
from pondstack.domain.units import MIB
from pondstack.tests.controller.conftest import POOL, Rack, call


def assert_only_this_waits(rack: Rack, index: int) -> None:
    """One slice has been left for the next round, all others are free; then it is, too."""
    states = {item.index: item.state for item in rack.reader.slices(POOL)}
    assert states.pop(index) == SliceState.SANITIZING
    assert set(states.values()) == {SliceState.FREE}
    rack.sanitizer.drain()
    assert {item.state for item in rack.reader.slices(POOL)} == {SliceState.FREE}


def test_what_a_host_does_not_give_back_waits_and_holds_up_nothing_else(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, given = rack.online("h1", 1), rack.online("h2", 1)
    revoke = EmulatedDevice.revoke

    def asks(self: EmulatedDevice, indexes, *, tag: str, epoch: int) -> None:
        if tag == kept.allocation_uuid:
            raise InUse("host h1 was asked and has not given it back")
        revoke(self, indexes, tag=tag, epoch=epoch)

    for grant in (kept, given):
        rack.ledger.slices.release(str(uuid4()), grant.allocation_uuid, grant.host)
    (index,) = kept.extents[0].indexes
    with monkeypatch.context() as patch:
        patch.setattr(EmulatedDevice, "revoke", asks)
        rack.sanitizer.drain()
    assert_only_this_waits(rack, index)


def test_a_slice_that_somebody_was_let_into_meanwhile_is_zeroed_all_the_same(
    rack: Rack, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late grant comes between the look at the permissions and the zeroing: it is taken back first."""
    grant = rack.online("h1", 1)
    rack.ledger.slices.release(str(uuid4()), grant.allocation_uuid, grant.host)
    (index,) = grant.extents[0].indexes
    start = index * grant.slice_mib * MIB
    with (device.path / files.MEMORY).open("r+b") as memory:
        memory.seek(start)
        memory.write(b"a tenant's")
    sanitize, tries = EmulatedDevice.sanitize, list[int]()

    def late(self: EmulatedDevice, slice_index: int, *, epoch: int) -> None:
        tries.append(slice_index)
        if len(tries) == 1:
            self.grant("h1", grant.extents, tag=grant.allocation_uuid, epoch=epoch)
        sanitize(self, slice_index, epoch=epoch)

    monkeypatch.setattr(EmulatedDevice, "sanitize", late)
    rack.sanitizer.drain()
    assert tries == [index, index]
    assert {item.state for item in rack.reader.slices(POOL)} == {SliceState.FREE}
    assert device.permissions() == {}
    with (device.path / files.MEMORY).open("rb") as memory:
        memory.seek(start)
        assert memory.read(10) == bytes(10)


def test_a_slice_that_its_host_found_not_zero_goes_to_nobody_until_an_operator_repairs_it(rack: Rack) -> None:
    grant = rack.online("h1", 2)
    first, second = grant.extents[0].indexes
    agent = rack.agents["h1"]
    agent.let_go(grant.allocation_uuid)
    agent.not_zero[grant.allocation_uuid] = [second]
    rack.beat("h1")
    assert rack.beat("h1")[0]["forget"] == [grant.allocation_uuid]
    rack.sanitizer.drain()
    states = {item.index: (item.state, item.cause) for item in rack.reader.slices(POOL)}
    assert states[first] == (SliceState.FREE, None)
    assert states[second] == (SliceState.QUARANTINED, Cause.SANITIZE_FAILED)
    agent.released.clear()
    call(rack.endpoint.audit, repair=True)
    rack.sanitizer.drain()
    assert {item.state for item in rack.reader.slices(POOL)} == {SliceState.FREE}


def test_a_slice_at_which_a_former_leader_sleeps_holds_up_nothing_else(
    rack: Rack, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boots would find the pool empty while the others wait: paused in zeroing, it keeps its slice for as long."""

    def waits(seconds: float) -> None:
        assert not seconds, "the sanitiser waited for a slice while others were to be zeroed"  # 0: oslo.db gives way

    grant = rack.online("h1", 2)
    rack.ledger.slices.release(str(uuid4()), grant.allocation_uuid, grant.host)
    busy = grant.extents[0].start
    with files.slices_locked(device.path, [busy], alone=True), monkeypatch.context() as patch:
        patch.setattr("time.sleep", waits)
        rack.sanitizer.drain()
    assert_only_this_waits(rack, busy)
