"""The first node of a guest with remote memory in libvirt's XML, and what does not go with it."""

from typing import Any

import pytest
from lxml import etree
from nova.virt.libvirt import config as vconfig

from pondstack.domain.errors import BadRequest, Conflict
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Attachment, Backing
from pondstack_nova.compute import znuma
from pondstack_nova.compute.remote import node as remote_node

QEMU = "/usr/bin/pondstack-qemu"


def make(*devices: Any, membacking: Any = None) -> Any:
    """Return a guest of 4096 MiB as Nova makes it."""
    guest = vconfig.LibvirtConfigGuest()
    guest.virt_type, guest.os_type, guest.name, guest.uuid, guest.vcpus = "qemu", "hvm", "vm", "u", 2
    guest.memory = 4096 * 1024
    guest.membacking = membacking
    for device in devices:
        guest.add_device(device)
    return guest


def disk(cache: str | None, source: str = "file", *, shareable: bool = False) -> Any:
    """Return a disk with a cache mode."""
    made = vconfig.LibvirtConfigGuestDisk()
    made.source_type, made.driver_cache, made.target_dev, made.shareable = source, cache, "vda", shareable
    made.target_bus, made.source_path = "virtio", "/disk"
    return made


def interface(net_type: str) -> Any:
    """Return an interface."""
    made = vconfig.LibvirtConfigGuestInterface()
    made.net_type = net_type
    return made


def backing(**values: Any) -> Any:
    """Return Nova's memory backing."""
    made = vconfig.LibvirtConfigGuestMemoryBacking()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_one_node_on_one_shared_memfd() -> None:
    """All CPUs and all memory; through the wrapper, which keeps huge pages away."""
    guest = make(disk("writeback"))
    remote_node.apply(guest, 4096, QEMU)
    document = etree.fromstring(guest.to_xml())
    [cell] = document.findall("./cpu/numa/cell")
    assert (cell.get("cpus"), cell.get("memory"), cell.get("memAccess")) == ("0-1", str(4096 * 1024), "shared")
    assert document.find("./memoryBacking/source").get("type") == "memfd"
    assert [item.text for item in document.findall("./devices/emulator")] == [QEMU]


@pytest.mark.parametrize("kind", ["file", "node"])
def test_beside_pool_nodes(kind: str) -> None:
    """Only the first node is the data plane's; a pool node of the host stays private to QEMU."""
    guest = make()
    backings = (Backing(kind, 1024, host_node=3 if kind == "node" else None),)
    znuma.apply(guest, Attachment("a", "c", "p", "pool", 1024, 1, (Extent(0, 1),), backings), 4096, QEMU, {0})
    remote_node.apply(guest, 4096, QEMU)
    document = etree.fromstring(guest.to_xml())
    cells = [(cell.get("memory"), cell.get("memAccess")) for cell in document.findall("./cpu/numa/cell")]
    assert cells == [(str(3072 * 1024), "shared"), (str(1024 * 1024), "shared" if kind == "file" else None)]
    assert [item.text for item in document.findall("./devices/emulator")] == [QEMU]


def test_what_nova_says_of_the_backing_stays() -> None:
    guest = make(membacking=backing(sharedpages=False, discard=True))
    remote_node.apply(guest, 4096, QEMU)
    found = etree.fromstring(guest.to_xml()).find("./memoryBacking")
    assert sorted(child.tag for child in found) == ["discard", "nosharepages", "source"]


@pytest.mark.parametrize(
    ("device", "text"),
    [
        (vconfig.LibvirtConfigGuestHostdevPCI(), "a host device"),
        (interface("vdpa"), "an interface of type vdpa"),
        (interface("vhostuser"), "an interface of type vhostuser"),
        (disk("none"), r"a disk \(vda\) with cache mode none \(set \[libvirt\] disk_cachemodes = file=writeback"),
        (disk("directsync", "block"), "with cache mode directsync"),
        (disk("none", "block", shareable=True), "it is shareable"),
    ],
)
def test_what_reaches_memory_behind_the_page_tables(device: Any, text: str) -> None:
    """Refused, and the guest is left as Nova made it."""
    guest = make(disk("writeback"), device)
    with pytest.raises(Conflict, match=f"the guest has .*{text}.*goes with no remote memory"):
        remote_node.apply(guest, 4096, QEMU)
    assert guest.membacking is None
    assert guest.cpu is None


@pytest.mark.parametrize("device", [disk("writethrough"), disk(None), disk("none", "network"), interface("bridge")])
def test_what_goes_through_them(device: Any) -> None:
    """A disk of the network is copied by sockets."""
    remote_node.apply(make(device), 4096, QEMU)


@pytest.mark.parametrize("name", ["locked", "filesource", "sharedaccess", "allocateimmediate", "hugepages"])
def test_memory_of_another_kind(name: str) -> None:
    with pytest.raises(Conflict, match="file_backed_memory"):
        remote_node.apply(make(membacking=backing(**{name: [object()] if name == "hugepages" else True})), 4096, QEMU)


def test_without_the_wrapper() -> None:
    with pytest.raises(BadRequest, match=r"\[pondstack\] emulator is not set"):
        remote_node.apply(make(), 4096, "")


def test_encrypted_memory() -> None:
    guest = make()
    guest.launch_security = object()
    with pytest.raises(Conflict, match="encrypted memory"):
        remote_node.apply(guest, 4096, QEMU)


def test_it_stays_a_memfd_where_it_moves_to() -> None:
    """Nova takes sources out of the XML, which libvirt would refuse; what it says otherwise stays."""
    for given in ("<domain/>", "<domain><memoryBacking><nosharepages/></memoryBacking></domain>"):
        document = etree.fromstring(remote_node.keep_memfd(given))
        [source] = document.findall("./memoryBacking/source")
        assert source.get("type") == "memfd"
        assert ("nosharepages" in given) == (document.find("./memoryBacking/nosharepages") is not None)
    file = '<domain><memoryBacking><source type="file"/></memoryBacking></domain>'
    [source] = etree.fromstring(remote_node.keep_memfd(file)).findall("./memoryBacking/source")
    assert source.get("type") == "file", "libvirt refuses it"
