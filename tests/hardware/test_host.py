"""Emulated hosts are hosts: they boot, have CXL memory, share a device, run our agent, and fail clearly."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Backing

from .channel import RemoteDied, RemoteError
from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost, HostDidNotBoot
from .machine import Machine

pytestmark = pytest.mark.hardware
SLICES = 2
GIB = 2**30


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that hosts see read-only, with the memory of one device."""
    folder = tmp_path_factory.mktemp("shared")
    with (folder / "memory").open("wb") as file:
        file.truncate(SLICES * GIB)
    (folder / "table").write_text("first")
    return folder


@pytest.fixture(scope="module")
def hosts(hardware: Hardware, shared: Path, figures: Figures) -> Iterator[Sequence[EmulatedHost]]:
    """Two hosts over one device."""
    machines = [Machine(name, devices=(shared / "memory",), shares={"/mnt/device": shared}) for name in ("h1", "h2")]
    before = time.monotonic()
    with hardware.hosts(*machines) as hosts:
        figures.add("boot of two hosts side by side", time.monotonic() - before, "s")
        yield hosts


def test_a_host_has_the_memory_device(hosts: Sequence[EmulatedHost], figures: Figures) -> None:
    host = hosts[0]
    host.run(["modprobe", "-a", "cxl_acpi", "cxl_pci", "cxl_mem", "cxl_port"]).check()
    host.wait_for_path("/sys/bus/cxl/devices/mem0/ram/size")
    assert host.get("/sys/bus/cxl/devices/mem0/ram/size").decode().strip() == hex(SLICES * GIB)
    before = time.monotonic()
    for _ in range(50):
        host.run(["true"]).check()
    figures.add("one command in a host", (time.monotonic() - before) / 50 * 1000, "ms")


def test_two_hosts_see_the_same_bytes_of_a_slice(hosts: Sequence[EmulatedHost], shared: Path) -> None:
    first, second = (host.remote("tests.hardware.guest.dax:OpenDax", slices=SLICES) for host in hosts)
    text = b"written by the first host"
    first.write(GIB + 4096, text)
    assert second.read(GIB + 4096, len(text)) == text
    second.write(100, b"written by the second host")
    assert first.read(100, 26) == b"written by the second host"
    with (shared / "memory").open("rb") as file:
        file.seek(100)
        assert file.read(26) == b"written by the second host"


def test_a_shared_folder_is_read_only_and_current(hosts: Sequence[EmulatedHost], shared: Path) -> None:
    (shared / "table").write_text("second")
    assert hosts[1].get("/mnt/device/table") == b"second"
    assert hosts[1].run(["touch", "/mnt/device/table"]).returncode != 0


def test_our_code_is_installed_from_the_wheel(hosts: Sequence[EmulatedHost]) -> None:
    assert "usage: pondstack-agent" in hosts[0].run(["pondstack-agent", "--help"]).check().stdout
    found = hosts[0].remote("importlib.metadata:entry_points", group="pondstack.host_pools")
    assert "emulated" in found.names()


def test_values_and_errors_cross_the_channel(hosts: Sequence[EmulatedHost], figures: Figures) -> None:
    remote = hosts[0].remote("tests.hardware.guest.examples:Example", path="/dev/x")
    assert remote.back((Extent(4, 2), Extent(1, 1))) == (
        Backing("node", 2048, path="/dev/x", host_node=1),
        Backing("node", 1024, path="/dev/x", host_node=1),
    )
    with pytest.raises(DeviceFailed, match="mem0 is gone; replace it"):
        remote.fail()
    with pytest.raises(RemoteError, match=r"ZeroDivisionError: on purpose(?s:.*)fail_otherwise"):
        remote.fail_otherwise()
    before = time.monotonic()
    for _ in range(100):
        remote.back(())
    figures.add("one call of an object in a host", (time.monotonic() - before) / 100 * 1000, "ms")


def test_calls_of_one_object_run_side_by_side_and_die_with_it(hosts: Sequence[EmulatedHost]) -> None:
    remote = hosts[0].remote("tests.hardware.guest.examples:Example", path="")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(remote.wait)
        remote.release()
        assert waiting.result(60) is True
        with pytest.raises(RemoteDied):
            remote.die()
        other = hosts[0].remote("tests.hardware.guest.examples:Example", path="")
        waiting = pool.submit(other.wait)
        other._sigkill()
        with pytest.raises(RemoteDied):
            waiting.result(60)


def test_processes_in_the_background(hosts: Sequence[EmulatedHost]) -> None:
    started = hosts[0].start(["cat"])
    started.write("through a pipe\n")
    assert started.wait_for("pipe") == "through a pipe\n"
    started.write(close=True)
    assert started.wait(60) == 0
    sleeping = hosts[0].start(["sleep", "1000"])
    assert sleeping.running()
    sleeping.kill()
    assert sleeping.wait() == -9
    with pytest.raises(TimeoutError, match="said before"):
        hosts[0].run(["sh", "-c", "echo said before; exec sleep 1000"], timeout=2)


def test_files_survive_a_power_cut_when_synced(hosts: Sequence[EmulatedHost]) -> None:
    host = hosts[1]
    data = bytes(range(256)) * 4096
    host.put("/var/lib/kept", data)
    host.run(["sync"]).check()
    host.reboot()
    assert host.get("/var/lib/kept") == data
    assert float(host.get("/proc/uptime").split()[0]) < host.machine.boot_seconds


def test_a_host_that_cannot_boot_says_why(hardware: Hardware) -> None:
    host = EmulatedHost(Machine("broken", kernel_options=("rdinit=/nothing",)), hardware.files, hardware.code)
    try:
        with pytest.raises(HostDidNotBoot, match=r"(?s)QEMU ended.*panic.*logs: "):
            host.power_on()
        with pytest.raises(RuntimeError, match="switched off"):
            host.run(["true"])
    finally:
        host.close(failed=False)
    assert not host.folder.exists()
