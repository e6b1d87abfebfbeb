"""What libvirt keeps of a guest, by libvirt's test driver; what that driver lacks, managed save images, by a fake."""

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pondstack.domain.errors import HostUnusable, Unavailable
from pondstack.rpc.wire import DomainRewrite
from pondstack_agent.mitigation.domains import Domains

GUEST, STRANGER = "2b3f44a4-55a1-4c33-8d5f-1d2a7f3c0001", "11111111-1111-4111-8111-111111111111"
URI = "test:///default"
XML = f"""<domain type='test'><name>guest</name><uuid>{GUEST}</uuid><memory unit='MiB'>512</memory><vcpu>1</vcpu>
<numatune><memnode cellid='0' mode='strict' nodeset='0'/><memnode cellid='1' mode='preferred' nodeset='1'/></numatune>
<os><type>hvm</type></os><cpu><numa><cell id='0' cpus='0' memory='256' unit='MiB'/><cell id='1' memory='256'
unit='MiB'/></numa></cpu></domain>"""


@pytest.fixture
def libvirt() -> Any:
    return pytest.importorskip("libvirt", reason="Python's libvirt bindings are not installed")


class Saved:
    """A domain with a managed save image, whose methods are else the test driver's."""

    def __init__(self, domain: Any) -> None:
        self._domain, self.image = domain, XML

    def __getattr__(self, name: str) -> Any:
        return getattr(self._domain, name)

    def hasManagedSaveImage(self, _flags: int) -> int:
        """There is one."""
        return 1

    def managedSaveGetXMLDesc(self, _flags: int) -> str:
        """Return the domain in it."""
        return self.image

    def managedSaveDefineXML(self, xml: str) -> None:
        """Replace it."""
        self.image = xml


class Host:
    """libvirt with the guest; `saved`: that has a managed save image. `steps`: what the agent told before it acted."""

    def __init__(self, libvirt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._connection = libvirt.open(URI)
        self.domain = self._connection.defineXML(XML)
        self.saved: Saved | None = None
        self.steps: list[str] = []
        monkeypatch.setattr(libvirt, "open", lambda _uri: self)

    def lookupByUUIDString(self, uuid: str) -> Any:
        """As virConnect's."""
        return self.saved or self._connection.lookupByUUIDString(uuid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> int:
        """The test driver forgets all with its last connection."""
        return 0

    def rewrite(self, uuid: str = GUEST) -> DomainRewrite:
        """Have the agent do it."""
        return Domains(URI, lambda: {0}, self.steps.append).rewrite(uuid)

    def nodes(self) -> list[str]:
        """Return the nodes of the stored domain's cells."""
        stored = self.domain.XMLDesc(2)
        return [line.split("nodeset='")[1][0] for line in stored.splitlines() if "<memnode" in line]


@pytest.fixture
def host(libvirt: Any, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(libvirt, monkeypatch)


def test_a_stored_domain_of_a_running_guest(host: Host) -> None:
    host.domain.create()
    assert host.nodes() == ["0", "1"]
    assert host.rewrite() == DomainRewrite("rewritten", changed=True)
    assert host.nodes() == ["0", "0"]
    assert host.rewrite() == DomainRewrite("rewritten")
    assert host.steps == ["domain"]
    assert host.domain.isActive()


def test_a_managed_save_image(host: Host) -> None:
    host.saved = Saved(host.domain)
    assert host.rewrite() == DomainRewrite("rewritten", managed_save=True, changed=True)
    assert host.steps == ["domain", "managed save"]
    assert "nodeset='1'" not in host.saved.image
    assert host.rewrite() == DomainRewrite("rewritten", managed_save=True)


class Killed(BaseException):
    """The agent ended here."""


@pytest.mark.parametrize("step", ["domain", "managed save"])
def test_killed_before_either(host: Host, step: str) -> None:
    """The next life does what is left."""
    host.saved = Saved(host.domain)

    def kill(name: str) -> None:
        if name == step:
            raise Killed

    with pytest.raises(Killed):
        Domains(URI, lambda: {0}, kill).rewrite(GUEST)
    assert host.rewrite().changed
    assert host.nodes() == ["0", "0"]
    assert "nodeset='1'" not in host.saved.image


def test_a_guest_that_libvirt_does_not_know(host: Host) -> None:
    assert host.rewrite(STRANGER) == DomainRewrite("absent")


@pytest.mark.usefixtures("libvirt")
def test_no_libvirt_there() -> None:
    domains = Domains("qemu+unix:///system?socket=/nonexistent", lambda: {0})
    with pytest.raises(Unavailable, match="cannot be reached at"):
        domains.check()


def test_what_libvirt_refuses(host: Host, libvirt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_xml: str) -> None:
        raise libvirt.libvirtError("no space left")

    monkeypatch.setattr(host, "defineXML", refuse, raising=False)
    with pytest.raises(Unavailable, match="no space left"):
        host.rewrite()


def test_no_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    with pytest.raises(HostUnusable, match="python3-libvirt"):
        Domains(URI, lambda: {0}).check()


def test_a_libvirt_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    silent = SimpleNamespace(
        registerErrorHandler=lambda *_: None, open=lambda _uri: end.wait(30.0), libvirtError=ValueError
    )
    monkeypatch.setitem(sys.modules, "libvirt", silent)
    try:
        with pytest.raises(Unavailable, match="does not answer"):
            Domains(URI, lambda: {0}, deadline_seconds=0.05).check()
    finally:
        end.set()
