"""An agent brings slices online that are handed over to its host by another one."""

import pytest

from agent.tests.conftest import Rig
from pondstack.devices.base import Heir
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.requests import AssignRequest


@pytest.fixture
def elsewhere(rig: Rig, device: EmulatedDevice) -> str:
    """The allocation of vm1 on host0, where it has written to its slices."""
    grant = rig.controller.assign("op0", AssignRequest("vm1", "host0", rig.pool, 2, 16))
    with open(device.path / "memory", "rb+") as memory:
        memory.write(b"the guest's")
    return grant.allocation_uuid


def test_what_is_handed_over_is_not_refused_for_what_the_guest_has_in_it(rig, elsewhere, device):
    found = rig.attach("op1", source="host0")
    assert found.handed
    assert device.permissions()[0].heir == Heir("host1", found.allocation_uuid)
    assert device.permissions()[0].tag == elsewhere
    rig.restart()
    assert rig.attach("op1", source="host0") == found
    assert rig.attachment() == found
    assert rig.detach("op2")
    assert rig.attached() == set()


def test_without_a_hand_over_it_is_refused(rig, elsewhere, device):
    assert elsewhere
    with open(device.path / "memory", "rb+") as memory:
        memory.seek(3 * 2**20)
        memory.write(b"somebody's")
    with pytest.raises(DeviceFailed, match="not zero"):
        rig.attach("op1", source="host9")
