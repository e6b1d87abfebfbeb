"""The release pipeline over a device that must ask the host: what it keeps waits, and holds up nothing else."""

from uuid import uuid4

import pytest

from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import InUse
from pondstack.domain.states import SliceState
from pondstack.tests.controller.conftest import POOL, Rack


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
        rack.ledger.release(str(uuid4()), grant.allocation_uuid, grant.host)
    (index,) = kept.extents[0].indexes
    with monkeypatch.context() as patch:
        patch.setattr(EmulatedDevice, "revoke", asks)
        rack.sanitizer.drain()
    states = {item.index: item.state for item in rack.reader.slices(POOL)}
    assert states.pop(index) == SliceState.SANITIZING
    assert set(states.values()) == {SliceState.FREE}
    rack.sanitizer.drain()
    assert {item.state for item in rack.reader.slices(POOL)} == {SliceState.FREE}
