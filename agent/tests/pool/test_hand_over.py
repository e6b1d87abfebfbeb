"""An agent brings slices online that are handed over to its host by another one."""

import json
import os

import pytest

from agent.tests.conftest import Rig
from pondstack.devices.base import Heir
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.errors import Conflict, DeviceFailed, NotFound
from pondstack.domain.requests import AssignRequest
from pondstack_agent.qemu import arrival_door
from tests.fixtures.rpc_call import call


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


def test_a_host_tells_where_its_guest_is_going_to(rig, device):
    mine = rig.attach("op1")
    assert rig.attachment() == mine
    extents, tag = mine.extents, mine.allocation_uuid
    device.add_heir("host2", extents, tag="heir", owner=tag, epoch=1)
    assert rig.attachment().heir == "host2"
    device.revoke([0, 1], tag="heir", epoch=1)
    assert rig.attachment().heir == ""


@pytest.mark.usefixtures("elsewhere")
def test_an_heir_is_going_nowhere(rig):
    assert rig.attach("op1", source="host0").heir == ""
    assert rig.attachment().heir == ""


@pytest.mark.usefixtures("elsewhere")
def test_qemu_leaves_out_what_is_handed_over_until_the_guest_is_here(rig):
    rig.attach("op1", source="host0")
    call(rig.agent.endpoint.await_guest, consumer_uuid="vm1")
    link = arrival_door.knock("host1", "vm1", os.getuid())
    assert link is not None
    told = []
    with link, link.makefile("rw", buffering=1) as monitor:
        monitor.write('{"QMP": {}}\n')
        for line in monitor:
            command = json.loads(line)
            told += command.get("arguments", {}).get("capabilities", [])
            answer = {"status": "completed"} if command["execute"] == "query-migrate" else {}
            monitor.write(json.dumps({"return": answer, "id": command.get("id")}) + "\n")
            if len(told) == 2:
                break
    assert told == [{"capability": "x-ignore-shared", "state": on} for on in (True, False)]


def test_nobody_is_awaited_whose_slices_have_to_be_copied(rig):
    with pytest.raises(NotFound):
        call(rig.agent.endpoint.await_guest, consumer_uuid="vm1")
    rig.attach("op1")
    with pytest.raises(Conflict, match="copy"):
        call(rig.agent.endpoint.await_guest, consumer_uuid="vm1")
    assert arrival_door.knock("host1", "vm1", os.getuid()) is None
