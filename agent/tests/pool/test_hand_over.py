"""An agent brings slices online that are handed over to its host by another one."""

import json
import os

import pytest

from agent.tests.conftest import Rig
from pondstack.devices.base import Heir
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.backing import UNKNOWN
from pondstack.domain.errors import Conflict, DeviceFailed, HostUnusable, NotFound
from pondstack.domain.requests import AssignRequest
from pondstack_agent.drivers.emulated import EmulatedHostPool
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


def test_a_guest_may_run_once_the_device_says_that_its_slices_are_this_hosts_alone(rig, elsewhere, device):
    rig.attach("op1", source="host0")
    assert call(rig.agent.endpoint.take_up, consumer_uuid="vm1") is False
    device.revoke([0, 1], tag=elsewhere, epoch=1)
    assert call(rig.agent.endpoint.take_up, consumer_uuid="vm1") is True
    assert call(rig.agent.endpoint.take_up, consumer_uuid="vm1") is True
    with pytest.raises(NotFound, match="may not run here"):
        call(rig.agent.endpoint.take_up, consumer_uuid="vm2")


def test_no_guest_runs_that_the_ledger_says_is_lost(rig, elsewhere, device):
    """Its source was fenced: the device lets this host in alone, and what its CPU caches had is not in memory."""
    rig.attach("op1", source="host0")
    device.revoke([0, 1], tag=elsewhere, epoch=1)

    def lost(**_arguments):
        raise Conflict("it is set aside: host_fenced: it burns")

    rig.controller.before["take_up"] = [lost]
    with pytest.raises(Conflict, match="it burns"):
        call(rig.agent.endpoint.take_up, consumer_uuid="vm1")


def test_a_driver_that_does_not_say_what_slices_are_serves_any_caller(rig, monkeypatch):
    monkeypatch.setattr(EmulatedHostPool, "backing", UNKNOWN)
    assert rig.attach("op1").pool_mib == 2


@pytest.mark.parametrize(("backing", "told"), [("file", False), ("devdax", True)])
def test_the_ledger_is_told_who_reads_past_caches(rig, elsewhere, monkeypatch, backing, told):
    assert elsewhere
    monkeypatch.setattr(EmulatedHostPool, "backing", backing)
    wanted = {"consumer_uuid": "vm1", "pool_uuid": rig.pool, "pool_mib": 2, "guest_mib": 16}
    call(rig.agent.endpoint.attach, operation_id="op1", backings=[backing], source="host0", **wanted)
    assert rig.controller.operations["op1"][0].write_back is told
    rig.restart()
    call(rig.agent.endpoint.attach, operation_id="op1", backings=[backing], source="host0", **wanted)


def test_a_caller_that_does_not_know_what_it_would_get_gets_nothing(rig, monkeypatch):
    """It would give the guest memory of the host, which nobody has claimed."""
    wanted = {"consumer_uuid": "vm1", "pool_uuid": rig.pool, "pool_mib": 2, "guest_mib": 16}
    monkeypatch.setattr(EmulatedHostPool, "backing", "devdax")
    for told in ({}, {"backings": ["file", "node"]}):
        with pytest.raises(HostUnusable, match="upgrade it"):
            call(rig.agent.endpoint.attach, operation_id="op1", **told, **wanted)
    assert rig.attached() == set()
    call(rig.agent.endpoint.attach, operation_id="op1", backings=["file", "node", "devdax"], **wanted)
    assert rig.attached()
