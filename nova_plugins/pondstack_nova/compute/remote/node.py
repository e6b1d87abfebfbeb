"""The first node of a guest with remote memory, in libvirt's XML: one shared memfd, which the data plane can serve.

Its pages come and go behind QEMU's page tables. So whatever reads or writes guest memory by another way (VFIO,
vhost-user, a disk with O_DIRECT) would see a page that has left, and such guests are refused.
"""

from collections.abc import Iterable
from typing import Any

from lxml import etree
from nova.virt.libvirt import config as vconfig

from pondstack.domain.errors import BadRequest, Conflict
from pondstack_nova.compute import znuma
from pondstack_nova.pins import REMOTE_LEGAL

DIRECT = frozenset({"none", "directsync"})
"""Cache modes of disks that use O_DIRECT."""
LOCAL_SOURCES = frozenset({"file", "block"})
"""Sources of disks that QEMU opens on its host; those of the network it copies by sockets."""
CACHEMODES = "[libvirt] disk_cachemodes = file=writeback,block=writeback"
_VHOST_USER = "vhostuser"


class MemfdBacking(vconfig.LibvirtConfigGuestMemoryBacking):
    """<memoryBacking> whose nodes are memfds, which Nova's own class does not write."""

    def format_dom(self) -> Any:
        """Return the element."""
        root = super().format_dom()
        root.append(etree.Element("source", type="memfd"))
        return root


def apply(guest: Any, memory_mib: int, emulator: str) -> None:
    """Have a LibvirtConfigGuest's first node served; after znuma.apply, where it has pool memory.

    Raises Conflict when something of the guest reaches its memory behind the page tables, or Nova lays it out;
    BadRequest without the emulator.
    """
    obstacle = pinned_by(guest)
    if obstacle:
        raise Conflict(f"the guest has {obstacle}, which goes with no remote memory; {REMOTE_LEGAL}")
    if not emulator:
        raise BadRequest("[pondstack] emulator is not set in nova.conf of this host; set it to pondstack-qemu's path")
    guest.membacking = _backing(guest.membacking)
    if guest.cpu is None:
        guest.cpu = vconfig.LibvirtConfigGuestCPU()
    if guest.cpu.numa is None:
        guest.cpu.numa = vconfig.LibvirtConfigGuestCPUNUMA()
        guest.cpu.numa.cells = znuma.cells(guest.vcpus, memory_mib, ())
    guest.cpu.numa.cells[0].memAccess = "shared"
    if not any(isinstance(device, znuma.Emulator) for device in guest.devices):
        guest.add_device(znuma.Emulator(emulator))


def keep_memfd(xml: str) -> str:
    """Return a domain's XML for another host with its first node a memfd, as it is: Nova takes sources out of it."""
    document = etree.fromstring(xml)
    backing = document.find("./memoryBacking")
    if backing is None:
        backing = etree.SubElement(document, "memoryBacking")
    if backing.find("./source") is None:
        backing.append(etree.Element("source", type="memfd"))
    return str(etree.tostring(document, encoding="unicode"))


def pinned_by(guest: Any) -> str | None:
    """Return what of a LibvirtConfigGuest reaches its memory behind the page tables; None when nothing does."""
    pin = znuma.pinned_by(guest)
    if pin:
        return pin
    for device in guest.devices:
        if isinstance(device, vconfig.LibvirtConfigGuestInterface) and device.net_type == _VHOST_USER:
            return "an interface of type vhostuser"
    return direct_disk(guest.devices)


def direct_disk(devices: Iterable[Any]) -> str | None:
    """Return which disk is opened with O_DIRECT, and what to do; None when none is."""
    for device in devices:
        if not isinstance(device, vconfig.LibvirtConfigGuestDisk) or device.source_type not in LOCAL_SOURCES:
            continue
        if device.driver_cache in DIRECT:
            way_out = "it is shareable" if device.shareable else f"set {CACHEMODES} on this host"
            return f"a disk ({device.target_dev}) with cache mode {device.driver_cache} ({way_out})"
    return None


def _backing(present: Any) -> MemfdBacking:
    """Return Nova's memory backing as a memfd's; raises Conflict where it is another already."""
    made = MemfdBacking()
    if present is None:
        return made
    if present.hugepages or present.locked or present.filesource or present.sharedaccess or present.allocateimmediate:
        raise Conflict(
            "the guest's memory is huge pages, locked, a file ([libvirt] file_backed_memory), shared with a vhost-user "
            f"device or taken at once, which goes with no remote memory; {REMOTE_LEGAL}"
        )
    made.sharedpages, made.discard = present.sharedpages, present.discard
    return made
