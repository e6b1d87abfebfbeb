"""Slices that move to another host with their guest: who may have them, and what the device is told."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import update

from pondstack.clients.placement import Inventory
from pondstack.db.models import ControllerRow
from pondstack.db.store import controllers
from pondstack.devices.base import Heir, Permission
from pondstack.domain import errors
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.rpc.wire import Grant
from pondstack.tests.controller.conftest import POOL, FakeAgent, Rack, call

VERSION = {"OpenStack-API-Version": "placement 1.36"}


@pytest.fixture
def http(placement_http) -> Any:
    return placement_http


def claim(rack: Rack, http: Any, consumer: str, *hosts: str, pool_mib: int = 2048) -> None:
    """Have a server claim memory of hosts, and of the pool, as Nova does."""
    places = {POOL: {"resources": {RESOURCE_CLASS: pool_mib}}} if pool_mib else {}
    for host in hosts:
        provider = rack.placement.provider_by_name(host)
        rack.placement.set_inventory(provider, "MEMORY_MB", Inventory(65536, 0, 1, 1, 65536))
        places[provider] = {"resources": {"MEMORY_MB": 512}}
    path = f"/allocations/{consumer}"
    generation = http.get(path, headers=VERSION).json().get("consumer_generation")
    body = {"allocations": places, "consumer_generation": generation, "project_id": "p", "user_id": "u"}
    answer = http.put(path, json=body, headers=VERSION)
    assert answer.status_code == 204, answer.text


@pytest.fixture
def running(placed: Rack, http: Any) -> Grant:
    """A guest of h1, which Nova moves to h2."""
    grant = placed.online("h1")
    claim(placed, http, grant.consumer_uuid, "h2")
    return grant


def come(rack: Rack, guest: Grant, host="h2", source="h1", **values) -> Grant:
    """Have a host ask for the guest's memory."""
    return rack.assign(host, consumer=guest.consumer_uuid, source=source, **values)


def arrive(rack: Rack, guest: Grant, host="h2", source="h1") -> Grant:
    """Have a host have it online."""
    grant = come(rack, guest, host, source)
    rack.agents[host].hold(grant)
    call(rack.endpoint.acknowledge, operation_id=str(uuid4()), allocation_uuid=grant.allocation_uuid, host=host)
    return grant


def test_the_destination_gets_the_same_slices_and_the_source_keeps_them(placed, running, device):
    operation_id = str(uuid4())
    for _ in range(2):
        heir = come(placed, running, operation_id=operation_id)
        assert (heir.handed, heir.extents) == (True, running.extents)
        entry = Permission("h1", running.allocation_uuid, 1, Heir("h2", heir.allocation_uuid))
        assert device.permissions() == {0: entry, 1: entry}
    assert placed.count("online") == 2


def test_what_its_guest_has_in_them_stays(placed, running, device):
    with open(device.path / "memory", "rb+") as memory:
        memory.write(b"the guest's")
    heir = arrive(placed, running)
    placed.release(running.allocation_uuid)
    placed.sanitizer.drain()
    assert device.permissions() == {i: Permission("h2", heir.allocation_uuid, 1) for i in (0, 1)}
    with open(device.path / "memory", "rb") as memory:
        assert memory.read(11) == b"the guest's"
    placed.release(heir.allocation_uuid, "h2")
    placed.sanitizer.drain()
    assert (device.permissions(), placed.count("free")) == ({}, 8)


def test_the_reconciler_has_the_device_follow_too(placed, running, device):
    heir = arrive(placed, running)
    placed.release(running.allocation_uuid)
    placed.reconcile()
    assert device.permissions() == {i: Permission("h2", heir.allocation_uuid, 1) for i in (0, 1)}


def test_while_its_owner_has_it_the_device_does_not_follow(placed, running, device):
    arrive(placed, running)
    before = device.permissions()
    placed.sanitizer.drain()
    assert device.permissions() == before
    assert {entry.host for entry in before.values()} == {"h1"}


def test_it_goes_before_the_device_has_followed(placed, running, device):
    heir = arrive(placed, running)
    placed.release(running.allocation_uuid)
    placed.release(heir.allocation_uuid, "h2")
    placed.sanitizer.drain()
    assert (device.permissions(), placed.count("free")) == ({}, 8)


def test_it_moves_on_before_the_device_has_followed(placed, running, http, device):
    there = arrive(placed, running)
    placed.release(running.allocation_uuid)
    claim(placed, http, running.consumer_uuid, "h1")
    back = arrive(placed, running, "h1", "h2")
    assert back.handed
    entry = Permission("h2", there.allocation_uuid, 1, Heir("h1", back.allocation_uuid))
    assert device.permissions() == {0: entry, 1: entry}


def test_a_second_try_comes_before_the_device_has_followed_the_end_of_the_first(placed, running, device):
    first = arrive(placed, running)
    placed.release(first.allocation_uuid, "h2")
    second = come(placed, running)
    entry = Permission("h1", running.allocation_uuid, 1, Heir("h2", second.allocation_uuid))
    assert device.permissions() == {0: entry, 1: entry}


def test_a_late_repetition_takes_nothing_from_the_next_heir(placed, running, http, device):
    operation_id = str(uuid4())
    there = come(placed, running, operation_id=operation_id)
    placed.agents["h2"].hold(there)
    call(placed.endpoint.acknowledge, operation_id="a", allocation_uuid=there.allocation_uuid, host="h2")
    placed.release(running.allocation_uuid)
    claim(placed, http, running.consumer_uuid, "h1")
    come(placed, running, "h1", "h2")
    before = device.permissions()
    assert come(placed, running, operation_id=operation_id) == there
    assert device.permissions() == before


@pytest.mark.parametrize(("hosts", "pool_mib"), [((), 2048), (("h1",), 2048), (("h2",), 0), (("h2",), 1024)], ids=str)
def test_nobody_gets_the_memory_of_a_guest_that_nova_does_not_move_there(placed, http, device, hosts, pool_mib):
    guest = placed.online("h1")
    if hosts or pool_mib:
        claim(placed, http, guest.consumer_uuid, *hosts, pool_mib=pool_mib)
    grant = come(placed, guest)
    assert not grant.handed
    assert {entry.heir for entry in device.permissions().values()} == {None}
    assert not set(grant.extents) & set(guest.extents)


def test_without_placement_nothing_is_handed_over(rack):
    assert not come(rack, rack.online("h1")).handed


def test_a_device_that_does_not_hand_over_gives_others(placed, running, monkeypatch):
    monkeypatch.setattr(type(placed.devices.get(POOL)), "hands_over", False)
    assert not come(placed, running).handed


def test_nothing_is_handed_over_past_a_host_of_the_former_release(placed, running):
    placed.agents["h1"].hands_over = ()
    placed.beat("h1")
    assert not come(placed, running).handed, "it would take the device's table for damaged"


def test_a_host_that_does_not_reach_the_pool_does_not_matter(placed, running):
    placed.agents["h3"] = FakeAgent("h3")
    placed.agents["h3"].hands_over = placed.agents["h3"].pools = ()
    placed.beat("h3")
    assert come(placed, running).handed


@pytest.mark.parametrize(
    ("values", "handed"),
    [
        ({}, True),
        ({"heirs_holder": None}, False),
        ({"holder": "c2:2"}, False),
        ({"holder": "c2:2", "role": controllers.DOWN}, True),
    ],
    ids=str,
)
def test_nothing_is_handed_over_past_a_controller_of_the_former_release(placed, running, values, handed):
    """One writes its row without the newer column, and its holder beside what its successor wrote there."""

    def write(session):
        controllers.record(session, "c2", "c2:1", role=controllers.STANDBY, epoch=0, followed_sequence=0)
        session.execute(update(ControllerRow).values({"role": controllers.STANDBY, **values}))

    placed.database.write(write)
    assert come(placed, running).handed is handed


def test_a_silent_placement_is_no_reason_to_copy(placed, running, monkeypatch):
    def silent(*_arguments: Any) -> Any:
        raise errors.Unavailable("Placement does not answer")

    monkeypatch.setattr(placed.placement, "held_by", silent)
    with pytest.raises(errors.Unavailable):
        come(placed, running)
    assert placed.count("online") == 2


def test_a_hand_over_that_the_device_refuses_is_undone(placed, running, device):
    device.revoke([1], tag=running.allocation_uuid, epoch=1)
    with pytest.raises(errors.PermissionHeld):
        come(placed, running)
    assert [entry.heir for entry in device.permissions().values()] == [None]
    assert placed.count("online") == 2
    assert len(placed.reader.rack().allocations) == 1
