"""What every HostPoolDriver does. A new driver adds one harness factory to HARNESSES and passes unchanged."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pondstack.devices import pool_uuid
from pondstack.devices.base import PoolDevice
from pondstack.devices.emulated import create_device
from pondstack.domain.errors import DeviceFailed, InUse, NotFound, PermissionHeld, PurposeConflict
from pondstack.domain.model import Extent, indexes_of
from pondstack.rpc.wire import Backing, Grant
from pondstack_agent.drivers.base import HostPoolDriver
from pondstack_agent.drivers.emulated import EmulatedHostPool

SLICES, SLICE_MIB = 8, 1

GUEST = """
import mmap, sys
path, offset, size, text = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].encode()
with open(path, "r+b") as file:
    memory = mmap.mmap(file.fileno(), size, offset=offset)
seen = bytes(memory[: len(text)])
memory[: len(text)] = text
print(seen.hex(), flush=True)
sys.stdin.read()
"""
"""Stands for a guest: maps a backing, tells what it finds, writes, and stays until its input ends."""


@dataclass
class Harness:
    """One device that two hosts reach. `open` makes a new driver object of a host: the restart of its agent."""

    device: PoolDevice
    open: Callable[[str], HostPoolDriver]
    guest: Callable[[Grant, Backing, str], AbstractContextManager[bytes]]
    """Run a process of the grant's guest on one backing; yields what it found there before it wrote the text."""
    lose_state: Callable[[str], None]
    """Remove what a host's agent keeps about its attachments."""
    slice_mib: int = SLICE_MIB

    def grant(self, host: str, *extents: Extent, tag: str) -> Grant:
        """Do what the controller does for an assignment."""
        self.device.grant(host, extents, tag=tag, epoch=1)
        return self.describe(host, *extents, tag=tag)

    def describe(self, host: str, *extents: Extent, tag: str) -> Grant:
        """Return a grant without the device's permission."""
        info = self.device.info()
        address = dict(info.address)
        return Grant(tag, f"vm-of-{tag}", host, pool_uuid(info.serial), "pool0", address, self.slice_mib, extents, 1)

    def held_for(self, purpose: str, *extents: Extent, tag: str) -> Grant:
        """Do what the controller does for a host slice of host1."""
        return replace(self.grant("host1", *extents, tag=tag), purpose=purpose)

    def take_back(self, grant: Grant, *, sanitize: bool = True) -> None:
        """Do what the controller does after a release."""
        self.device.revoke(indexes_of(grant.extents), tag=grant.allocation_uuid, epoch=1)
        for index in indexes_of(grant.extents) if sanitize else ():
            self.device.sanitize(index, epoch=1)


def emulated(folder: Path) -> Harness:
    """The device that is a folder."""
    path = folder / "device"
    device = create_device(path, SLICES, slice_mib=SLICE_MIB, serial="contract")

    def open_driver(host: str) -> HostPoolDriver:
        return EmulatedHostPool(host=host, state_dir=folder / host, device_paths=[str(path)])

    def lose_state(host: str) -> None:
        for record in (folder / host).rglob("*.json"):
            record.unlink()

    return Harness(device, open_driver, guest, lose_state)


HARNESSES: list[Callable[[Path], Harness]] = [emulated]


@pytest.fixture(params=HARNESSES, ids=lambda factory: factory.__name__)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    made: Harness = request.param(tmp_path)
    return made


@contextmanager
def guest(_grant: Grant, backing: Backing, text: str) -> Iterator[bytes]:
    """Run a process of this machine that maps a backing of an emulated device."""
    command = [
        sys.executable,
        "-c",
        GUEST,
        backing.path,
        str(backing.offset_bytes),
        str(backing.size_mib * 2**20),
        text,
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield bytes.fromhex(process.stdout.readline())
        finally:
            process.stdin.close()


def test_pools_are_what_the_host_reaches(harness: Harness) -> None:
    assert harness.open("host1").pools() == (pool_uuid(harness.device.info().serial),)


def test_one_backing_per_extent_in_order(harness: Harness) -> None:
    backings = harness.open("host1").attach(harness.grant("host1", Extent(4, 2), Extent(1, 1), tag="a"))
    assert [backing.size_mib for backing in backings] == [2 * harness.slice_mib, harness.slice_mib]
    assert all(backing.distance > 10 for backing in backings)


def test_attach_twice_is_one_attachment(harness: Harness) -> None:
    grant = harness.grant("host1", Extent(0, 1), tag="a")
    driver = harness.open("host1")
    backings = driver.attach(grant)
    with harness.guest(grant, backings[0], "written meanwhile"):
        assert driver.attach(grant) == backings
    assert len(driver.attached()) == 1


def test_what_is_attached_outlives_the_driver(harness: Harness) -> None:
    grant = harness.grant("host1", Extent(0, 2), tag="a")
    backings = harness.open("host1").attach(grant)
    again = harness.open("host1")
    [found] = again.attached()
    assert (found.allocation_uuid, found.consumer_uuid, found.extents) == ("a", "vm-of-a", (Extent(0, 2),))
    assert found.pool_uuid == grant.pool_uuid
    assert not found.in_use
    assert again.backings("a") == backings
    assert {found.backing} == {backing.kind for backing in backings}, "controllers have to know what QEMU leaves out"


def test_attach_needs_the_permission_of_the_device(harness: Harness) -> None:
    driver = harness.open("host1")
    with pytest.raises(PermissionHeld, match="slice 0"):
        driver.attach(harness.describe("host1", Extent(0, 1), tag="a"))
    assert driver.attached() == ()


@pytest.mark.parametrize(("host", "tag"), [("host2", "a"), ("host1", "b")])
def test_attach_needs_the_permission_of_this_host_and_allocation(harness: Harness, host: str, tag: str) -> None:
    harness.grant(host, Extent(1, 1), tag=tag)
    harness.grant("host1", Extent(0, 1), tag="a")
    with pytest.raises(PermissionHeld, match="slice 1"):
        harness.open("host1").attach(harness.describe("host1", Extent(0, 2), tag="a"))


def test_attach_of_an_unknown_pool_fails(harness: Harness) -> None:
    grant = replace(harness.grant("host1", Extent(0, 1), tag="a"), pool_uuid=pool_uuid("elsewhere"))
    with pytest.raises(DeviceFailed, match="does not reach"):
        harness.open("host1").attach(grant)


def test_detach_twice(harness: Harness) -> None:
    driver = harness.open("host1")
    driver.attach(harness.grant("host1", Extent(0, 1), tag="a"))
    assert driver.detach("a") is True
    assert driver.detach("a") is False
    assert driver.attached() == ()
    with pytest.raises(NotFound):
        driver.backings("a")


def test_memory_that_goes_offline_counts_for_its_node(harness: Harness) -> None:
    """Of drivers whose memory is a node of the host: pages of other guests may have been moved away from it."""
    driver = harness.open("host1")
    backings = driver.attach(harness.grant("host1", Extent(0, 1), tag="a"))
    driver.attach(harness.grant("host1", Extent(1, 2), tag="b"))
    nodes = {backing.host_node for backing in backings} - {None}
    before = driver.evacuations()
    assert driver.detach("a")
    after = driver.evacuations()
    assert nodes == after.keys()
    assert all((after[node] or 0) > (before.get(node) or 0) for node in nodes)
    assert driver.evacuations() == after
    assert harness.open("host1").evacuations().keys() == nodes  # its former life may have been killed in the middle


def test_detach_refuses_while_a_guest_maps_any_extent(harness: Harness) -> None:
    driver = harness.open("host1")
    grant = harness.grant("host1", Extent(0, 1), Extent(3, 2), tag="a")
    backings = driver.attach(grant)
    with harness.guest(grant, backings[1], "busy"):
        assert [item.in_use for item in driver.attached()] == [True]
        with pytest.raises(InUse, match="destroy the guest"):
            harness.open("host1").detach("a")
        assert [item.allocation_uuid for item in driver.attached()] == ["a"]
    assert [item.in_use for item in driver.attached()] == [False]
    assert driver.detach("a")


def test_a_neighbour_is_not_in_use(harness: Harness) -> None:
    driver = harness.open("host1")
    grant = harness.grant("host1", Extent(2, 2), tag="a")
    mapped = driver.attach(grant)
    driver.attach(harness.grant("host1", Extent(1, 1), tag="before"))
    driver.attach(harness.grant("host1", Extent(4, 1), tag="after"))
    with harness.guest(grant, mapped[0], "busy"):
        assert {item.allocation_uuid: item.in_use for item in driver.attached()} == {
            "a": True,
            "before": False,
            "after": False,
        }
        assert driver.detach("before")
        assert driver.detach("after")


def test_hosts_see_only_their_own_attachments(harness: Harness) -> None:
    harness.open("host1").attach(harness.grant("host1", Extent(0, 1), tag="a"))
    assert harness.open("host2").attached() == ()
    assert harness.open("host2").detach("a") is False


def test_the_second_owner_never_sees_the_first_ones_bytes(harness: Harness) -> None:
    first = harness.grant("host1", Extent(0, 1), tag="a")
    [backing] = harness.open("host1").attach(first)
    with harness.guest(first, backing, "secret of the first tenant"):
        pass
    assert harness.open("host1").detach("a")
    harness.take_back(first)
    second = harness.grant("host2", Extent(0, 1), tag="b")
    [backing] = harness.open("host2").attach(second)
    with harness.guest(second, backing, "what does the second one find") as found:
        assert not any(found)


def test_a_slice_that_was_not_sanitised_is_refused(harness: Harness) -> None:
    first = harness.grant("host1", Extent(2, 1), tag="a")
    [backing] = harness.open("host1").attach(first)
    with harness.guest(first, backing, "secret of the first tenant"):
        pass
    assert harness.open("host1").detach("a")
    harness.take_back(first, sanitize=False)
    second = harness.open("host2")
    with pytest.raises(DeviceFailed, match=r"slice 2 .* not sanitised"):
        second.attach(harness.grant("host2", Extent(1, 2), tag="b"))
    assert second.attached() == ()


def test_a_guest_that_is_not_on_record_is_reported(harness: Harness) -> None:
    """The agent's state folder was lost; the slices of the running guest must not look free."""
    grant = harness.grant("host1", Extent(0, 2), tag="a")
    [backing] = harness.open("host1").attach(grant)
    with harness.guest(grant, backing, "still running"):
        harness.lose_state("host1")
        driver = harness.open("host1")
        [found] = driver.attached()
        assert (found.allocation_uuid, found.consumer_uuid, found.in_use) == ("a", "", True)
        assert found.extents == (Extent(0, 2),)
        with pytest.raises(InUse, match="not on record"):
            driver.detach("a")
    assert driver.attached() == ()
    assert driver.detach("a") is False


def test_a_node_is_for_guests_or_for_tiering(harness: Harness) -> None:
    driver = harness.open("host1")
    guests = harness.grant("host1", Extent(0, 1), tag="guests")
    driver.attach(guests)
    driver.attach(harness.held_for("base", Extent(1, 1), tag="base"))
    tier = harness.held_for("tier", Extent(2, 1), tag="tier")
    with pytest.raises(PurposeConflict, match="has guests' slices of pool pool0"):
        driver.attach(tier)
    assert {(item.allocation_uuid, item.purpose) for item in driver.attached()} == {
        ("guests", "guest"),
        ("base", "base"),
    }
    driver.detach("guests")
    driver.attach(tier)
    again = harness.open("host1")
    with pytest.raises(PurposeConflict, match="holds slices of pool pool0 for tiering"):
        again.attach(harness.grant("host1", Extent(3, 1), tag="more"))
    assert again.attach(tier), "what it has already is its own"
