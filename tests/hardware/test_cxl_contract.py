"""The contract of agent/tests/drivers/test_contract.py with real CXL memory: two hosts over one device."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent.tests.drivers.test_contract import *  # noqa: F403 - the contract's tests, all of them
from agent.tests.drivers.test_contract import SLICES, Harness
from pondstack.domain.backing import DEVDAX, NODE
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent

from .conftest import Hardware
from .cxl_rack import CxlRack, cxl_rack
from .figures import Figures

pytestmark = pytest.mark.hardware
SLICE_MIB = 128
"""One memory block of the hosts."""
HOSTS = ("host1", "host2")


def by_night(*steps: str) -> list[Any]:
    """Return steps that a real kernel meets by night only; agent/tests/drivers/cxl/test_zeroing.py has them all."""
    return [pytest.param(step, marks=pytest.mark.night) for step in steps]


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """Two hosts over one device."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    with cxl_rack(hardware, folder, HOSTS, SLICES, SLICE_MIB) as rack:
        yield rack


@pytest.fixture
def harness(rack: CxlRack) -> Iterator[Harness]:
    """The contract's harness, over hosts that are cleaned after each test."""
    yield Harness(rack.device, rack.open, rack.guest, rack.lose_state, SLICE_MIB)
    rack.clean()


def test_a_host_zeroes_what_it_gives_back(rack: CxlRack, harness: Harness) -> None:
    """[cxl] sanitize = host: the bytes are gone before the device is told anything."""
    driver, text = rack.open("host1"), "what a guest left"
    rack.remote("host1").zero_on_host()
    grant = harness.grant("host1", Extent(1, 1), tag="zeroed")
    with harness.guest(grant, driver.attach(grant)[0], text):
        pass
    assert text.encode() in _slice(rack, 1)
    assert driver.detach("zeroed")
    assert not any(_slice(rack, 1))
    harness.take_back(grant, sanitize=False)


def test_slices_change_their_host_with_what_is_in_them(rack: CxlRack, harness: Harness, figures: Figures) -> None:
    """Devices that guests map. QEMU has no caches: what is written back is seen by agent/tests/drivers/cxl only."""
    for name in HOSTS:
        rack.remote(name).backing(DEVDAX)
    text = "written at the source"
    source, destination = rack.open("host1"), rack.open("host2")
    own = harness.grant("host1", Extent(1, 2), Extent(4, 1), tag="moves")
    here = source.attach(own)
    for backing in here:
        with harness.guest(own, backing, text):
            pass
    heir = rack.heir_of(own)
    assert source.heir("moves") == "host2"
    there = destination.attach(heir)
    assert [(item.kind, item.size_mib) for item in there] == [(DEVDAX, 2 * SLICE_MIB), (DEVDAX, SLICE_MIB)]
    assert not destination.take_up(heir.allocation_uuid), "the source has them yet"

    assert source.detach("moves")
    assert rack.remote("host1").audit()["slices"] == [], "no process of the source can map them any more"
    assert not destination.take_up(heir.allocation_uuid), "nobody has told the device"
    harness.take_back(own, sanitize=False)
    assert destination.take_up(heir.allocation_uuid)
    for backing in there:
        with harness.guest(heir, backing, text) as found:
            assert found == text.encode()
    assert destination.detach(heir.allocation_uuid)
    harness.take_back(heir)
    for name in HOSTS:
        rack.remote(name).backing(NODE)
    figures.add("slices of a hand-over between two emulated hosts", 3 * SLICE_MIB, "MiB", "0 bytes copied")


def test_after_a_reboot_what_the_device_still_grants_is_online_again(rack: CxlRack, harness: Harness) -> None:
    driver = rack.open("host1")
    kept, gone = (harness.grant("host1", Extent(index, 1), tag=tag) for index, tag in ((0, "kept"), (2, "gone")))
    for grant in (kept, gone):
        driver.attach(grant)
    harness.device.revoke([2], tag="gone", epoch=1)
    rack.reboot("host1")
    driver = rack.open("host1")
    assert [item.allocation_uuid for item in driver.attached()] == ["kept"]
    slices = rack.remote("host1").audit()["slices"]
    assert [(driver_name, online, blocks) for _, _, driver_name, online, blocks in slices] == [("kmem", 1, 1)]
    with harness.guest(kept, driver.backings("kept")[0], "after the reboot"):
        pass


def test_a_base_slice_keeps_the_node_online_while_guests_come_and_go(rack: CxlRack, harness: Harness) -> None:
    """libvirt cannot tell a host's memory while a node that it knows has none online."""
    driver, host = rack.open("host1"), rack.hosts["host1"]
    driver.attach(harness.held_for("base", Extent(6, 1), tag="base"))
    guest = harness.grant("host1", Extent(7, 1), tag="guest")
    [backing] = driver.attach(guest)
    assert (backing.host_node, backing.size_mib) == (1, SLICE_MIB)
    driver.detach("guest")
    nodes = host.run(["cat", "/sys/devices/system/node/has_memory"]).check().stdout.strip()
    assert nodes == "0-1"
    assert [item.purpose for item in driver.attached()] == ["base"]


def _slice(rack: CxlRack, index: int) -> bytes:
    size = SLICE_MIB << 20
    with (rack.folder / "memory").open("rb") as memory:
        memory.seek(index * size)
        return memory.read(size)


@pytest.mark.parametrize("step", [*by_night("unbind", "devdax", "verify", "shrink", "forget"), "zero", "clean"])
def test_a_host_that_was_killed_while_it_gave_back_leaves_zeros(rack: CxlRack, harness: Harness, step: str) -> None:
    """[cxl] sanitize = host: nobody else zeroes, and the bytes are gone all the same."""
    driver, remote, text = rack.open("host1"), rack.remote("host1"), "what a guest left"
    remote.zero_on_host()
    grant = harness.grant("host1", Extent(1, 1), tag="killed")
    with harness.guest(grant, driver.attach(grant)[0], text):
        pass
    assert text.encode() in _slice(rack, 1)
    assert remote.call_killed("detach", ["killed"], step) is False
    driver.detach("killed")
    assert driver.attached() == ()
    assert not any(_slice(rack, 1))
    harness.take_back(grant, sanitize=False)


@pytest.mark.parametrize("step", [*by_night("look", "kmem", "online", "state"), "dirty"])
def test_a_host_that_was_killed_while_it_attached_leaves_zeros(rack: CxlRack, harness: Harness, step: str) -> None:
    driver, remote = rack.open("host1"), rack.remote("host1")
    remote.zero_on_host()
    grant = harness.grant("host1", Extent(2, 1), tag="killed")
    assert remote.call_killed("attach", [grant], step) is False
    driver.detach("killed")
    assert driver.attached() == ()
    assert not any(_slice(rack, 2))
    harness.take_back(grant, sanitize=False)


def test_a_host_zeroes_after_a_reboot_what_it_does_not_keep(rack: CxlRack, harness: Harness) -> None:
    driver, text = rack.open("host1"), "before the reboot"
    rack.remote("host1").zero_on_host()
    grant = harness.grant("host1", Extent(3, 1), tag="rebooted")
    with harness.guest(grant, driver.attach(grant)[0], text):
        pass
    assert rack.remote("host1").call_killed("detach", ["rebooted"], "unbind") is False
    rack.reboot("host1")
    driver = rack.open("host1")
    rack.remote("host1").zero_on_host()
    assert text.encode() in _slice(rack, 3)
    driver.detach("rebooted")
    assert driver.attached() == ()
    assert not any(_slice(rack, 3))
    harness.take_back(grant, sanitize=False)


def test_the_next_host_zeroes_what_a_fenced_one_left(rack: CxlRack, harness: Harness) -> None:
    driver, text = rack.open("host1"), "of a host that is dead"
    rack.remote("host1").limit(3, 60.0)
    other = rack.open("host2")
    rack.remote("host2").zero_on_host()
    grant = harness.grant("host1", Extent(4, 1), tag="fenced")
    with harness.guest(grant, driver.attach(grant)[0], text):
        pass
    driver.detach("fenced")  # as `device`: the bytes stay
    assert text.encode() in _slice(rack, 4)
    harness.take_back(grant, sanitize=False)
    mine = harness.grant("host2", Extent(4, 1), tag="next")
    with harness.guest(mine, other.attach(mine)[0], "the next one") as found:
        assert not any(found)
    assert text.encode() not in _slice(rack, 4)
    other.detach("next")
    harness.take_back(mine)


def test_the_look_reads_every_byte(rack: CxlRack, harness: Harness) -> None:
    with (rack.folder / "memory").open("r+b") as memory:
        memory.seek((5 * SLICE_MIB << 20) + 123_457)
        memory.write(b"x")
    driver = rack.open("host1")
    rack.remote("host1").limit(3, 60.0)
    with pytest.raises(DeviceFailed, match=r"slice 5 .* \(offset 123457\)"):
        driver.attach(harness.grant("host1", Extent(5, 1), tag="refused"))
