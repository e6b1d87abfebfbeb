"""Whether a guest has pool memory, outside of its start; and what libvirt still knows of it."""

from types import SimpleNamespace
from typing import Any

import pytest
from nova import exception

from nova_plugins.tests.compute.virt_rig import VM, Driver, Rack, claim, guest, h1, h2, rack, spawn
from pondstack_nova.virt_libvirt import PondLibvirtDriver

__all__ = ["h1", "h2", "rack"]

ZNUMA = "<domain><cpu><numa><cell id='0' cpus='0' memory='64'/><cell id='1' memory='1048576'/></numa></cpu></domain>"


@pytest.mark.parametrize("specs", [{}, {"pond:policy": "auto"}])
def test_what_a_rescued_guest_gets(rack: Rack, h1: Driver, specs: dict[str, str]) -> None:
    """By its claim: what the agent holds, or nothing, whether the agent answers or not."""
    spawn(h1, guest(specs))
    assert h1._pond_attachment(guest(specs)).pool_mib == 1024
    rack.claims[VM] = claim("h1", local=4096, pool=0)
    rack.agents.lose("h1")
    rack.agents.down.add("h1")
    assert h1._pond_attachment(guest(specs)) is None


@pytest.mark.parametrize(
    ("xml", "topology", "had"),
    [(ZNUMA, None, True), ("<domain/>", None, False), (ZNUMA, object(), False), (None, None, None)],
)
def test_what_libvirt_knows(xml: str | None, topology: Any, had: bool | None) -> None:
    """Nodes without CPUs are pool memory, but for a guest whose nodes are Nova's; of no domain nothing is known."""
    driver = object.__new__(PondLibvirtDriver)

    def get_guest(_instance: Any) -> Any:
        if xml is None:
            raise exception.InstanceNotFound(instance_id=VM)
        return SimpleNamespace(get_xml_desc=lambda: xml)

    driver._host = SimpleNamespace(get_guest=get_guest)
    assert driver._pond_had_pool_memory(guest(numa_topology=topology)) is had
