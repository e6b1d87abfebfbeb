"""Only a guest on an emulated pool runs as root, by its own label."""

from typing import Any

import pytest
from lxml import etree
from nova.virt.libvirt import config as vconfig

from pondstack_nova.compute import seclabels

CAPABILITIES = """
<capabilities><host><uuid>x</uuid>
  <secmodel><model>{main}</model><doi>0</doi></secmodel>
  <secmodel><model>dac</model><doi>0</doi><baselabel type='kvm'>+64055:+64055</baselabel></secmodel>
</host></capabilities>
"""


def made() -> Any:
    """Return a guest of Nova's."""
    guest = vconfig.LibvirtConfigGuest()
    guest.virt_type, guest.os_type, guest.name, guest.uuid, guest.vcpus = "qemu", "hvm", "vm", "u", 1
    return guest


@pytest.mark.parametrize(
    ("main", "found"), [("apparmor", ("apparmor", "dac")), ("selinux", ("selinux", "dac")), ("none", ("dac",))]
)
def test_the_drivers_of_a_host(main: str, found: tuple[str, ...]) -> None:
    """One that is not there must not be named: libvirt refuses the domain."""
    assert seclabels.models(CAPABILITIES.format(main=main)) == found


def test_the_label_is_the_guests_own() -> None:
    guest, other = made(), made()
    seclabels.run_as_root(guest, ("apparmor", "dac"))
    labels = etree.fromstring(guest.to_xml()).findall("./seclabel")
    assert [dict(label.attrib) for label in labels] == [
        {"type": "none", "model": "apparmor"},
        {"type": "static", "model": "dac", "relabel": "yes"},
    ]
    assert labels[1].findtext("label") == "+0:+0"
    assert etree.fromstring(other.to_xml()).findall("./seclabel") == []
