"""What a guest under KVM uses, by DAMON of its host: told from what it does not."""

from collections.abc import Iterator

import pytest

from . import inner_guest
from .channel import Started
from .conftest import Hardware
from .figures import Figures
from .host import EmulatedHost
from .machine import Machine

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(600)]

HOST, GUEST = "host1", "/mnt/guest"
UUID = "5f0c2c5e-9b1f-4c6d-8f57-1f1c1f0a3b77"
WINDOW_SECONDS = 10.0
NODE_MIB, USED_MIB = 128, 64
CLOSE = 0.15
"""KVM maps memory in pieces of 2 MiB, and the program's does not begin with one."""


@pytest.fixture(scope="module")
def host(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedHost]:
    """A host without CXL memory."""
    folder = tmp_path_factory.mktemp("accesses")
    inner_guest.build(hardware.files, folder)
    with hardware.hosts(Machine(HOST, shares={GUEST: folder})) as [host]:
        yield host


@pytest.fixture(scope="module")
def guest(host: EmulatedHost) -> Iterator[Started]:
    """A guest that verifies 64 MiB of its second node, for ever."""
    argv = inner_guest.command(GUEST, UUID, pool_mib=NODE_MIB, node=0, distance=20)
    with inner_guest.running(host, "accesses", argv, "pass 2 ") as started:
        yield started


def test_what_a_guest_uses_is_hot_and_the_rest_cold(host: EmulatedHost, guest: Started, figures: Figures) -> None:
    scans = host.remote("tests.hardware.guest.accesses:Scans", window_seconds=WINDOW_SECONDS)
    busy = scans.scan()
    print(busy)
    guest.write("p")
    guest.wait_for("resting")
    resting = scans.scan()
    print(resting)
    guest.write("v")
    difference = busy["hot_mib 1"] - resting["hot_mib 1"]
    figures.add(f"guest under KVM: {USED_MIB} MiB used or not, hot", difference, "MiB", f"+- {CLOSE:.0%}")
    figures.add("guest under KVM, at rest: hot of its second node", resting["hot_mib 1"], "MiB")
    figures.add("guest under KVM: cost of a scan", busy["scan_cpu_seconds"], "s CPU")
    assert difference == pytest.approx(USED_MIB, rel=CLOSE)
    assert resting["cold_mib 1"] - busy["cold_mib 1"] == pytest.approx(USED_MIB, rel=CLOSE)
    assert busy["hot_mib"] == busy["hot_mib 0"] + busy["hot_mib 1"]
    assert scans.damon() == ""


def test_what_a_killed_agent_left_is_taken_away_and_nothing_else(host: EmulatedHost, guest: Started) -> None:
    scans = host.remote("tests.hardware.guest.accesses:Scans", window_seconds=WINDOW_SECONDS)
    scans.scan_killed()
    assert scans.damon() == "on"
    assert isinstance(scans.scan()["hot_mib 1"], float)
    assert scans.damon() == ""
    host.run(["sh", "-c", "echo 1 >/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds"]).check()
    assert scans.scan()["hot_mib"] == "somebody else uses DAMON on this host"
    assert host.run(["cat", "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds"]).check().stdout == "1\n"
    host.run(["sh", "-c", "echo 0 >/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds"]).check()
    assert guest.running()
