"""The contract of agent/tests/drivers/test_contract.py with real CXL memory: two hosts over one device."""

from collections.abc import Iterator

import pytest

from agent.tests.drivers.test_contract import *  # noqa: F403 - the contract's tests, all of them
from agent.tests.drivers.test_contract import SLICES, Harness
from pondstack.domain.model import Extent

from .conftest import Hardware
from .cxl_rack import CxlRack, cxl_rack

pytestmark = pytest.mark.hardware
SLICE_MIB = 128
"""One memory block of the hosts."""


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """Two hosts over one device."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    with cxl_rack(hardware, folder, ("host1", "host2"), SLICES, SLICE_MIB) as rack:
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


def _slice(rack: CxlRack, index: int) -> bytes:
    size = SLICE_MIB << 20
    with (rack.folder / "memory").open("rb") as memory:
        memory.seek(index * size)
        return memory.read(size)
