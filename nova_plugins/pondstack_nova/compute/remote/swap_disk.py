"""The swap disk of a guest in libvirt's XML: a disk of the network, served over NBD on a Unix socket of its host."""

from typing import Any

from lxml import etree
from nova.virt.libvirt import config as vconfig

from pondstack.domain.swap_disk import SERIAL

TARGET = "vdz"
"""Behind whatever Nova attaches: it names disks from vda on."""
RECONNECT_SECONDS = 600
"""So long the guest's accesses wait for a data plane that starts anew, before they fail."""


class SwapDisk(vconfig.LibvirtConfigGuestDisk):
    """<disk> on a Unix socket, which Nova's own class does not write."""

    def __init__(self, socket: str) -> None:
        super().__init__()
        self.source_type, self.source_protocol, self.socket = "network", "nbd", socket
        self.driver_name, self.driver_format, self.driver_cache = "qemu", "raw", "writeback"
        self.driver_discard = "unmap"
        self.target_dev, self.target_bus, self.serial = TARGET, "virtio", SERIAL

    def format_dom(self) -> Any:
        """Return the element. An access that fails is the guest's to see: a paused one would not say why."""
        root = super().format_dom()
        root.find("driver").set("error_policy", "report")
        source = root.find("source")
        source.append(etree.Element("host", transport="unix", socket=self.socket))
        source.append(etree.Element("reconnect", delay=str(RECONNECT_SECONDS)))
        return root


def apply(guest: Any, socket: str) -> None:
    """Give a LibvirtConfigGuest the disk that is served on a socket."""
    guest.add_device(SwapDisk(socket))
