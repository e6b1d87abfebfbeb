"""An agent that is root no more brings real CXL memory online and takes it back, by its privileged processes."""

from collections.abc import Iterator

import pytest

from agent.tests.drivers.test_contract import Harness
from pondstack.domain.backing import DEVDAX, NODE
from pondstack.domain.model import Extent

from .conftest import Hardware
from .cxl_rack import SERIAL, CxlRack, RemoteDriver, cxl_rack

pytestmark = pytest.mark.hardware
SLICES, SLICE_MIB = 4, 128
NOBODY = 65534


@pytest.fixture(scope="module")
def rack(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxlRack]:
    """One host with one device."""
    folder = tmp_path_factory.mktemp("pool") / "device"
    with cxl_rack(hardware, folder, ("host1",), SLICES, SLICE_MIB) as rack:
        yield rack


@pytest.mark.parametrize("kind", [NODE, DEVDAX])
def test_slices_come_and_go_zeroed_without_root(rack: CxlRack, kind: str) -> None:
    remote = rack.hosts["host1"].remote("tests.hardware.guest.cxl:UnprivilegedDriver", host="host1", serial=SERIAL)
    driver, text = RemoteDriver(remote), "what a guest left"
    harness = Harness(rack.device, lambda _name: driver, rack.guest, rack.lose_state, SLICE_MIB)
    remote.zero_on_host()
    remote.backing(kind)
    grant = harness.grant("host1", Extent(1, 2), tag=kind)
    [backing] = driver.attach(grant)
    assert (backing.kind, backing.host_node) == (kind, 1 if kind == NODE else None)
    with harness.guest(grant, backing, text):
        assert [item.in_use for item in driver.attached()] == [True]
    with (rack.folder / "memory").open("rb") as memory:
        assert text.encode() in memory.read()
        assert driver.detach(kind)
        memory.seek(0)
        assert not any(memory.read())
    harness.take_back(grant)
    assert remote.audit()["slices"] == []
    user, capabilities = remote.abilities()
    assert (tuple(user), list(capabilities)) == ((NOBODY,) * 3, [])
