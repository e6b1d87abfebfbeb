"""Security labels of a guest on an emulated pool: its QEMU opens files of root and of the controller, so it is root's.

The label is the guest's own. libvirt's configuration stays as it is: all other guests of the host run as libvirt's user
and confined (sVirt).
"""

from collections.abc import Collection
from typing import Any

from lxml import etree

DAC, NONE = "dac", "none"
ROOT = "+0:+0"
"""User and group by number, which no name service is asked for."""


def models(capabilities: str) -> tuple[str, ...]:
    """Return the security drivers of a host, of what libvirt says of it (getCapabilities)."""
    found = etree.fromstring(capabilities).findall("./host/secmodel/model")
    return tuple(item.text for item in found if item.text and item.text != NONE)


def run_as_root(guest: Any, host_models: Collection[str]) -> None:
    """Have a LibvirtConfigGuest run as root, without confinement by the other security drivers of its host."""
    plain = guest.format_dom

    def labelled() -> Any:
        root = plain()
        for model in host_models:
            root.append(_label(model))
        return root

    # Nova's class writes no <seclabel>.
    guest.format_dom = labelled


def _label(model: str) -> Any:
    if model != DAC:
        return etree.Element("seclabel", type="none", model=model)
    label = etree.Element("seclabel", type="static", model=DAC, relabel="yes")
    etree.SubElement(label, "label").text = ROOT
    return label
