"""What libvirt and Nova keep of a guest that claims local memory only: bound to it before a resume or an unrescue."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nova import exception

from pondstack_nova.compute import stored_domains, znuma
from pondstack_nova.compute.agent_client import PoolMemoryUnavailable

POOLED = (
    "<domain><numatune><memnode cellid='0' mode='strict' nodeset='0'/><memnode cellid='1' mode='preferred' "
    "nodeset='1'/></numatune><cpu><numa><cell id='0' cpus='0' memory='1024'/><cell id='1' memory='1024'/></numa></cpu>"
    "</domain>"
)
LOCAL = znuma.to_local(POOLED, {0})


@dataclass
class Libvirt:
    """One domain, and Nova's Host over it. `saved`: the XML of its managed save image."""

    stored: str = POOLED
    saved: str = POOLED
    wrote: list[str] = field(default_factory=list)

    def get_guest(self, _instance: Any) -> Any:
        """As Host.get_guest."""
        return SimpleNamespace(_domain=self, get_xml_desc=lambda **_flags: self.stored)

    def write_instance_config(self, xml: str) -> None:
        """As Host.write_instance_config."""
        self.stored = xml
        self.wrote.append("domain")

    def hasManagedSaveImage(self, _flags: int) -> int:
        """As virDomain's."""
        return int(bool(self.saved))

    def managedSaveGetXMLDesc(self, _flags: int) -> str:
        """As virDomain's."""
        return self.saved

    def managedSaveDefineXML(self, xml: str) -> None:
        """As virDomain's."""
        self.saved = xml
        self.wrote.append("managed save")


@pytest.mark.parametrize(
    ("stored", "saved", "wrote"),
    [
        (POOLED, POOLED, ["domain", "managed save"]),  # suspended before its mitigation
        (LOCAL, POOLED, ["managed save"]),  # suspended after it
        (LOCAL, LOCAL, []),
        (LOCAL, "", []),
        ("<domain/>", "", []),
    ],
)
def test_what_is_bound(stored: str, saved: str, wrote: list[str]) -> None:
    libvirt = Libvirt(stored, saved)
    stored_domains.bind(libvirt, SimpleNamespace(), {0}, lambda: True)
    assert libvirt.wrote == wrote
    assert not any(znuma.uses_pool(xml, {0}) for xml in (libvirt.stored, libvirt.saved) if xml)


def test_a_guest_that_claims_pool_memory_keeps_it() -> None:
    libvirt = Libvirt()
    stored_domains.bind(libvirt, SimpleNamespace(), {0}, lambda: False)
    assert libvirt.wrote == []


def test_nobody_is_asked_about_a_guest_without_any() -> None:
    stored_domains.bind(Libvirt("<domain/>", ""), SimpleNamespace(), {0}, pytest.fail)
    stored_domains.bind(Libvirt(LOCAL, LOCAL), SimpleNamespace(), {0}, pytest.fail)


def test_nothing_changes_while_nobody_knows() -> None:
    def unknown() -> bool:
        raise PoolMemoryUnavailable(reason="Placement is silent")

    libvirt = Libvirt()
    with pytest.raises(PoolMemoryUnavailable):
        stored_domains.bind(libvirt, SimpleNamespace(), {0}, unknown)
    assert libvirt.wrote == []


def test_a_guest_that_libvirt_does_not_know() -> None:
    def get_guest(_instance: Any) -> Any:
        raise exception.InstanceNotFound(instance_id="vm")

    stored_domains.bind(SimpleNamespace(get_guest=get_guest), SimpleNamespace(), {0}, pytest.fail)


def test_the_domain_that_an_unrescue_goes_by(tmp_path: Path) -> None:
    path = tmp_path / "unrescue.xml"
    stored_domains.bind_file(path, {0}, pytest.fail)
    path.write_text(POOLED)
    stored_domains.bind_file(path, {0}, lambda: False)
    assert path.read_text() == POOLED
    stored_domains.bind_file(path, {0}, lambda: True)
    assert path.read_text() == LOCAL
