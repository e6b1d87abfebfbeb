"""Guests whose memory is lost with the host that they came from: in ERROR with that reason, then off."""

from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from nova import exception
from nova.compute import vm_states

from nova_plugins.tests.compute.virt_rig import VM, Driver, Rack, h1, h2, rack
from pondstack_nova.compute.remote import lost_guests
from pondstack_nova.compute.remote.lost_guests import RemoteMemoryLost

__all__ = ["h1", "h2", "rack"]


class Server:
    """The instance as Nova has it, and what became of it, in order."""

    def __init__(self) -> None:
        self.uuid, self.node, self.task_state, self.vm_state = VM, "h1", None, vm_states.ACTIVE
        self.done: list[Any] = []

    def save(self, expected_task_state: Any) -> None:
        assert expected_task_state == [None]
        self.done.append(self.vm_state)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()

    def get(_context: Any, uuid: str) -> Server:
        if uuid != VM:
            raise exception.InstanceNotFound(instance_id=uuid)
        return made

    monkeypatch.setattr(lost_guests.objects, "Instance", SimpleNamespace(get_by_uuid=get))
    fault = lost_guests.compute_utils
    monkeypatch.setattr(fault, "add_instance_fault_from_exc", lambda _c, item, error: item.done.append(error))
    monkeypatch.setattr(Driver, "power_off", lambda _self, item: item.done.append("off"), raising=False)
    return made


def test_it_is_in_error_with_the_reason_before_it_is_off(rack: Rack, h1: Driver, server: Server) -> None:
    rack.agents.lost["h1"] = ["a guest that Nova forgot", VM]
    h1.get_available_resource("h1")
    state, error, off = server.done
    assert (state, off) == (vm_states.ERROR, "off")
    assert isinstance(error, RemoteMemoryLost)
    assert "hard reboot it" in str(error)
    server.done.clear()
    h1.get_available_resource("h1")
    assert server.done == ["off"], "again, should it still run; the reason is told once"


@pytest.mark.parametrize("change", [{"node": "h2"}, {"task_state": "migrating"}])
def test_who_is_on_its_way_or_elsewhere_is_let_be(
    rack: Rack, h1: Driver, server: Server, change: dict[str, str]
) -> None:
    vars(server).update(change)
    rack.agents.lost["h1"] = [VM]
    h1.get_available_resource("h1")
    assert server.done == []


def test_nobody_is_ended_where_nothing_is_lost_or_nobody_says(rack: Rack, h1: Driver, server: Server) -> None:
    h1.get_available_resource("h1")
    rack.agents.faults["get_lost_guests"] = [oslo_messaging.UnsupportedVersion("1.15")]
    rack.agents.lost["h1"] = [VM]
    h1.get_available_resource("h1")
    assert server.done == []


@pytest.mark.usefixtures("server")
def test_one_that_cannot_be_ended_keeps_no_round_from_going_on(
    rack: Rack, h1: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(_self: Any, _instance: Any) -> None:
        raise exception.InternalError("libvirt is away")

    monkeypatch.setattr(Driver, "power_off", breaks)
    rack.agents.lost["h1"] = [VM]
    assert h1.get_available_resource("h1")["hypervisor_hostname"] == "h1"
    assert "was not ended" in caplog.text
