"""The contract of drivers where guests map their slices ([cxl] backing = devdax): two hosts over one device."""

from collections.abc import Iterator

import pytest

from agent.tests.drivers.test_contract import *  # noqa: F403 - the contract's tests, all of them
from agent.tests.drivers.test_contract import SLICES, Harness
from pondstack.domain.backing import DEVDAX

from .conftest import Hardware
from .cxl_rack import CxlRack, cxl_rack

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
