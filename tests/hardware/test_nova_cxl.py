"""Nova and CXL meet: a server of Nova's on slices that the kernel of its emulated host brought online.

In the host: nova-compute with our virt driver, libvirtd, the agent with its driver `cxl`. The other services of the
cloud run on this machine, as on the rack. Nothing is handed to QEMU but what Nova and libvirt write.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pondstack.devices import pool_uuid
from pondstack.domain.units import MIB
from pondstack_rack import ports
from pondstack_rack.cloud_client import Cloud
from pondstack_rack.demo import demo
from pondstack_rack.layout import PORTS, Sizes
from pondstack_rack.rack import Rack
from pondstack_rack.services import image, pondstack_services
from pondstack_rack.wait import wait_until
from tests.rack.local_guest import LocalGuest

from .conftest import Hardware
from .figures import Figures
from .machine import Machine
from .nova_host import SETTLE_SECONDS, TABLE, NovaHost

pytestmark = [pytest.mark.hardware, pytest.mark.night, pytest.mark.timeout(2400)]

HOST, FLAVOR, NODE = "nova1", "pond.fixed.small", 1
SLICES, SLICE_MIB = 3, 1024
"""One is the host's base slice, one is the server's, one is the free buffer."""

MEMORY_MIB = 2560


@pytest.fixture(scope="module")
def rack(hardware: Hardware) -> Iterator[Rack]:
    """A control plane without hosts of its own."""
    del hardware  # skips where there can be no host
    folder = Path(tempfile.mkdtemp(prefix="rack-", dir="/tmp"))
    rack = Rack(folder / "r", Sizes(hosts=0, fakes=0, slices=SLICES, port_base=ports.free_base(PORTS)))
    try:
        yield rack
    finally:
        rack.down()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def host(hardware: Hardware, rack: Rack, figures: Figures) -> Iterator[NovaHost]:
    """The host, up and known to the scheduler; it boots while the control plane starts."""
    device = rack.layout.pool_device
    machine = Machine(HOST, (device / "memory",), {TABLE: device}, memory_mib=MEMORY_MIB, network=True)
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        starting = pool.submit(rack.up)
        if not wait_until(lambda: (rack.layout.done / "pool").exists() or starting.done(), SETTLE_SECONDS):
            pytest.fail("the rack makes no pool")
        [emulated] = stack.enter_context(hardware.hosts(machine))
        starting.result()
        figures.add("control plane and an emulated host, side by side", time.monotonic() - begun, "s")
        begun = time.monotonic()
        host = NovaHost(emulated, rack)
        host.configure()
        host.start_agent()
        host.hold_base_slice()
        host.start_libvirt()
        host.start_compute()
        host.wait_compute()
        figures.add("nova-compute in an emulated host, to where it serves", time.monotonic() - begun, "s")
        host.wait_placeable()
        yield host


def test_a_server_lives_on_slices_that_the_kernel_brought_online(host: NovaHost, figures: Figures) -> None:
    admin = host.rack.connection()
    begun = time.monotonic()
    server = _create(admin, host)
    _check_guest(host, server)
    figures.add("zNUMA server of Nova, from the request to its first beat", time.monotonic() - begun, "s")
    _check_books(host, admin, server)

    begun = time.monotonic()
    host.reboot()
    host.clear_console(server)
    host.start_agent()
    host.wait_agent()
    host.start_libvirt()
    host.services["agent"].kill()
    host.start_compute()
    waiting = f"Guests with pool memory wait on {HOST}"
    host.eventually(lambda: waiting in host.log("nova-compute"), "nova-compute does not wait for the agent")
    assert not host.host.run(["virsh", "-q", "list", "--name"]).check().stdout.strip()
    host.start_agent()
    host.wait_compute()
    _check_guest(host, server)
    figures.add("boot of its host, to its next first beat", time.monotonic() - begun, "s")
    _check_books(host, admin, server)
    assert admin.compute.get_server(server).status == "ACTIVE"

    [mine] = [found["index"] for found in _slices(host) if found["consumer_uuid"] == server]
    # The guest's pages lie in the slices of its node, whosever: a node's pages are fungible.
    held = [found["index"] for found in _slices(host) if found["state"] == "online"]
    assert not all(_is_zero(host, index) for index in held)
    begun = time.monotonic()
    host.openstack("server", "delete", server)
    host.eventually(
        lambda: [found["state"] for found in _slices(host)].count("free") == SLICES - 1, "the slice does not come back"
    )
    figures.add("from the delete to sanitized and free", time.monotonic() - begun, "s")
    assert _is_zero(host, mine)


def test_a_server_leaves_its_slice_and_stays_local(host: NovaHost, figures: Figures) -> None:
    """An operator has it mitigated; Nova suspends and resumes it; its host boots without an agent; Nova stops it."""
    admin = host.rack.connection()
    server = _create(admin, host)
    _check_guest(host, server)
    guest = LocalGuest(host.rack, server)
    begun = time.monotonic()
    told = json.loads(guest.mitigate())
    assert (told["state"], told["method"]) == ("done", "copy")
    figures.add("server of Nova, moved to local memory and its slice back", time.monotonic() - begun, "s")
    guest.is_local()
    _goes_on_locally(host, server)
    admin.compute.suspend_server(server)
    guest.becomes("SUSPENDED")
    admin.compute.resume_server(server)
    guest.becomes("ACTIVE")
    _goes_on_locally(host, server)
    assert _bindings(host, server) == {"0": ("strict", "0"), "1": ("strict", "0")}

    begun = time.monotonic()
    host.reboot()
    host.clear_console(server)
    host.start_libvirt()
    host.start_compute()
    host.wait_compute()
    guest.becomes("ACTIVE")
    _goes_on_locally(host, server)
    figures.add("boot of its host, to the third beat of a server that was moved", time.monotonic() - begun, "s")
    assert _bindings(host, server) == {}
    host.start_agent()
    host.wait_agent()
    guest.is_local()
    _goes_on_locally(host, server)

    admin.compute.stop_server(server)
    guest.becomes("SHUTOFF")
    host.clear_console(server)
    admin.compute.start_server(server)
    guest.becomes("ACTIVE")
    _goes_on_locally(host, server)
    assert _bindings(host, server) == {}
    guest.is_local()
    host.openstack("server", "delete", server)


def _goes_on_locally(host: NovaHost, server: str) -> None:
    def beats() -> list[dict[str, Any]]:
        return image.console_lines(host.console(server), "beat")

    begun = len(beats())
    host.eventually(lambda: len(beats()) >= begun + 3, "the guest says nothing")
    assert beats()[-1]["errors"] == 0
    assert sum(found[NODE] for found in host.pages(server).values()) == 0


def _bindings(host: NovaHost, server: str) -> dict[str | None, tuple[str | None, str | None]]:
    found = host.domain(server).iter("memnode")
    return {node.get("cellid"): (node.get("mode"), node.get("nodeset")) for node in found}


def _create(admin: Any, host: NovaHost) -> str:
    words = ["--flavor", FLAVOR, "--image", image.IMAGE, "--nic", "none", "znuma", "-f", "json"]
    server = json.loads(host.openstack("--os-compute-api-version", "2.90", "server", "create", *words))["id"]
    found = None

    def settled() -> bool:
        nonlocal found
        found = admin.compute.get_server(server)
        return found.status in ("ACTIVE", "ERROR")

    host.eventually(settled, "the server is neither ACTIVE nor in ERROR")
    assert found is not None
    assert found.status == "ACTIVE", found.fault
    assert found.hypervisor_hostname == HOST
    return str(server)


def _check_guest(host: NovaHost, server: str) -> None:
    """Compare what the guest sees, what Nova told libvirt, where QEMU's pages are, and what the host's kernel has."""

    def beaten() -> bool:
        return bool(image.console_lines(host.console(server), "beat"))

    host.eventually(beaten, "the guest says nothing")
    text = host.console(server)
    local, pool = image.console_lines(text, "node")
    beat = image.console_lines(text, "beat")[-1]
    node = NODE
    distance = int(host.host.get("/sys/devices/system/node/node0/distance").split()[node])

    assert (local["cpulist"], pool["cpulist"]) == ("0", "")
    assert pool["distance"] == [distance, 10]
    assert distance > 10
    assert 0.9 * SLICE_MIB <= pool["memtotal_kib"] / 1024 <= SLICE_MIB
    assert (beat["pool_node"], beat["errors"]) == (1, 0)

    meminfo = host.host.get(f"/sys/devices/system/node/node{node}/meminfo").decode()
    assert f"MemTotal: {2 * SLICE_MIB * 1024} kB" in " ".join(meminfo.split())
    assert _bindings(host, server) == {"0": ("strict", "0"), "1": ("preferred", str(node))}
    pages = host.pages(server)
    assert {bound: set(found) for bound, found in pages.items()} == {frozenset({0}): {0}, frozenset({node}): {node}}
    assert pages[frozenset({node})][node] * 4 >= beat["pool_buffer_kib"] > 0


def _check_books(host: NovaHost, admin: Any, server: str) -> None:
    facts = demo.look(host.rack.layout, admin, server)
    assert demo.check(facts) == []
    cloud, findings = Cloud.of_rack(host.rack.layout.root), []

    def agreed() -> bool:
        nonlocal findings
        findings = cloud.audit()["findings"]
        return not findings

    assert wait_until(agreed, SETTLE_SECONDS, 1.0), findings


def _slices(host: NovaHost) -> list[dict[str, Any]]:
    return Cloud.of_rack(host.rack.layout.root).memory_list(f"pools/{pool_uuid(pondstack_services.SERIAL)}/slices")


def _is_zero(host: NovaHost, index: int) -> bool:
    """Tell whether the device has nothing but zeros in a slice, by its bytes."""
    with (host.rack.layout.pool_device / "memory").open("rb") as memory:
        memory.seek(index * SLICE_MIB * MIB)
        return all(memory.read(MIB) == bytes(MIB) for _ in range(SLICE_MIB))
