"""Guests that map their slices as dax devices ([cxl] backing = devdax): the contract of drivers, and hand-overs.

Two hosts over one device. QEMU has no caches, so what is written back is seen by agent/tests/drivers/cxl only; here it
is the kernel that has to take each step.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from agent.tests.drivers.test_contract import *  # noqa: F403 - the contract's tests, all of them
from agent.tests.drivers.test_contract import SLICES, Harness
from pondstack.domain.backing import DEVDAX
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant

from .conftest import Hardware
from .cxl_rack import CxlRack, cxl_rack
from .figures import Figures

pytestmark = pytest.mark.hardware
SLICE_MIB = 128
HOSTS = ("host1", "host2")


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """Two hosts over one device."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    with cxl_rack(hardware, folder, HOSTS, SLICES, SLICE_MIB) as rack:
        yield rack


@pytest.fixture
def harness(rack: CxlRack) -> Iterator[Harness]:
    """The contract's harness, over hosts that are cleaned after each test."""
    for name in HOSTS:
        rack.remote(name).backing(DEVDAX)
    yield Harness(rack.device, rack.open, rack.guest, rack.lose_state, SLICE_MIB)
    rack.clean()


def heir_of(harness: Harness, own: Grant) -> Grant:
    """Have the device let host2 in as the heir of host1, and return its grant, as the controller does for a move."""
    heir = replace(own, allocation_uuid=f"heir-of-{own.allocation_uuid}", host="host2", handed=True)
    owner = own.allocation_uuid
    harness.device.add_heir("host2", own.extents, tag=heir.allocation_uuid, owner=owner, epoch=1)  # type: ignore[attr-defined]
    return heir


def test_slices_change_their_host_with_what_is_in_them(rack: CxlRack, harness: Harness, figures: Figures) -> None:
    text = "written at the source"
    source, destination = rack.open("host1"), rack.open("host2")
    own = harness.grant("host1", Extent(1, 2), Extent(4, 1), tag="moves")
    here = source.attach(own)
    for backing in here:
        with harness.guest(own, backing, text):
            pass
    heir = heir_of(harness, own)
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
    figures.add("slices of a hand-over between two emulated hosts", 3 * SLICE_MIB, "MiB", "0 bytes copied")
