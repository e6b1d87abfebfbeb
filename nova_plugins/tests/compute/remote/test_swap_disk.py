"""Swap disks of guests on their hosts: there before they are made, in their XML, gone when they leave."""

from typing import Any

import pytest
from lxml import etree
from nova import exception
from nova.virt.libvirt import config as vconfig

from nova_plugins.tests.compute.virt_rig import VM, Driver, Rack, guest, h1, h2, rack, spawn
from pondstack.domain.errors import Conflict, HostUnusable, Unavailable
from pondstack_nova.compute.remote import node, swap_disk
from pondstack_nova.compute.remote.life import check_move
from pondstack_nova.compute.remote.memory import RemoteMemoryUnavailable
from pondstack_nova.compute.remote.swap import SwapUnavailable

__all__ = ["h1", "h2", "rack"]

SWAP = {"pond:swap_mb": "512"}
BOTH = {"pond:remote_mb": "1024", **SWAP}


def claim(*hosts: str, remote: int = 0) -> dict[str, Any]:
    """Return allocations of a guest with a swap disk."""
    mirror = (4096 if remote else 0) + 512
    held = {
        f"{host}-rp": {"resources": {"MEMORY_MB": 4096 - remote, "CUSTOM_POND_MIRROR_MB": mirror}} for host in hosts
    }
    return held | ({"lenders-rp": {"resources": {"CUSTOM_POND_REMOTE_MB": remote}}} if remote else {})


@pytest.fixture(autouse=True)
def _claimed(rack: Rack) -> None:
    rack.claims[VM] = claim("h1")


def make(driver: Driver, specs: dict[str, str] = SWAP) -> Any:
    """Build a guest on a host; returns it."""
    instance = guest(specs)
    remote = 1024 if specs == BOTH else 0
    spawn(driver, instance, claim(driver.host, remote=remote))
    return instance


def test_it_is_there_before_the_guest_and_goes_after_it(rack: Rack, h1: Driver) -> None:
    instance = make(h1)
    assert rack.agents.swap == {("h1", VM): 512}
    assert h1._pond_swap_socket(instance) == f"/plane/h1/{VM}.sock"
    h1.reboot(instance)
    assert rack.agents.swap == {("h1", VM): 512}
    rack.agents.faults["release_swap"] = [Conflict("it is open")] * 2  # QEMU's connection ends a moment later
    h1.destroy("context", instance)
    assert (rack.agents.swap, rack.agents.held) == ({}, {})


def test_a_guest_without_one(h1: Driver) -> None:
    assert h1._pond_swap_socket(guest({"pond:policy": "local"})) == ""


def test_beside_remote_memory(rack: Rack, h1: Driver) -> None:
    rack.claims[VM] = claim("h1", remote=1024)
    instance = make(h1, BOTH)
    assert (rack.agents.borrowed, rack.agents.swap) == ({("h1", VM): 1024}, {("h1", VM): 512})
    h1.destroy("context", instance)
    assert (rack.agents.borrowed, rack.agents.swap) == ({}, {})


def test_a_disk_that_cannot_be_had_leaves_no_remote_memory(rack: Rack, h1: Driver) -> None:
    """Nova tries another host."""
    rack.claims[VM] = claim("h1", remote=1024)
    rack.agents.faults["attach_swap"] = [HostUnusable("no data plane")]
    with pytest.raises(SwapUnavailable) as refusal:
        make(h1, BOTH)
    assert isinstance(refusal.value, exception.ComputeResourcesUnavailable)
    assert not isinstance(refusal.value, RemoteMemoryUnavailable)
    assert "The swap disk is not available: the host cannot use it" in str(refusal.value)
    assert (rack.agents.borrowed, rack.agents.swap, h1.seen) == ({}, {}, [])


def test_a_build_that_fails_ends_it(rack: Rack, h1: Driver) -> None:
    h1.breaks.add("spawn")
    with pytest.raises(exception.InternalError):
        make(h1)
    assert rack.agents.swap == {}


def test_a_start_that_fails_keeps_it(rack: Rack, h1: Driver) -> None:
    instance = make(h1)
    h1.breaks.add("made anew")
    with pytest.raises(exception.InternalError):
        h1.reboot(instance)
    assert rack.agents.swap == {("h1", VM): 512}


def test_another_size_replaces_it(rack: Rack, h1: Driver) -> None:
    """A resize on the same host; what goes away may still be on its way."""
    rack.agents.swap["h1", VM] = 1024
    rack.agents.faults["attach_swap"] = [Conflict("it is being released; try again later")] * 3
    make(h1)
    assert rack.agents.swap == {("h1", VM): 512}


def test_a_data_plane_that_starts_is_waited_for(rack: Rack, h1: Driver) -> None:
    instance = make(h1)
    rack.agents.faults["attach_swap"] = [Unavailable("no data plane serves")] * 2
    assert h1._pond_swap_socket(instance)
    rack.agents.faults["attach_swap"] = [HostUnusable("none is to be here")]
    with pytest.raises(SwapUnavailable):
        h1._pond_swap_socket(instance)


def test_it_stays_on_its_host() -> None:
    with pytest.raises(exception.MigrationPreCheckError, match="swap disk in remote memory cannot be migrated live"):
        check_move(guest(SWAP))
    with pytest.raises(exception.MigrationPreCheckError, match="swap disk in remote memory cannot be migrated live"):
        check_move(guest(BOTH))
    check_move(guest({"pond:policy": "local"}))


def test_the_xml() -> None:
    """A network disk on the socket; it is no disk with O_DIRECT, so that it goes with remote memory."""
    made = vconfig.LibvirtConfigGuest()
    swap_disk.apply(made, "/plane/x.sock")
    [disk] = made.devices
    assert node.direct_disk(made.devices) is None
    document = etree.fromstring(disk.to_xml())
    assert dict(document.attrib) == {"type": "network", "device": "disk"}
    assert dict(document.find("driver").attrib) == {
        "name": "qemu",
        "type": "raw",
        "cache": "writeback",
        "discard": "unmap",
        "error_policy": "report",
    }
    source = document.find("source")
    assert dict(source.attrib) == {"protocol": "nbd"}
    assert [(child.tag, dict(child.attrib)) for child in source] == [
        ("host", {"transport": "unix", "socket": "/plane/x.sock"}),
        ("reconnect", {"delay": "600"}),
    ]
    assert dict(document.find("target").attrib) == {"dev": "vdz", "bus": "virtio"}
    assert document.findtext("serial") == "pond-swap"
    assert len(document.findtext("serial")) <= 20, "of virtio"
