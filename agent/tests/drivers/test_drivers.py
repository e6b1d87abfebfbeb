"""Several drivers as one."""

from dataclasses import replace

import pytest

from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.devices.emulated_files import MEMORY
from pondstack.domain.errors import DeviceFailed, HostUnusable, NotFound
from pondstack.domain.model import Extent
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import HostZeroing
from pondstack_agent.drivers import HostPools, load_drivers
from pondstack_agent.drivers.emulated import EmulatedHostPool


@pytest.fixture
def two(tmp_path, driver) -> HostPools:
    create_device(tmp_path / "second", 2, slice_mib=1, serial="second")
    second = EmulatedHostPool(host="host1", state_dir=tmp_path / "state2", device_paths=[str(tmp_path / "second")])
    return HostPools([second, driver])


def test_the_driver_that_reaches_the_pool_attaches(two, driver, make_grant) -> None:
    grant = make_grant(Extent(0, 1))
    assert len(two.pools()) == 2
    backings = two.attach(grant)
    assert driver.attached() == two.attached()
    assert two.backings(grant.allocation_uuid) == backings
    assert two.detach(grant.allocation_uuid) is True
    assert two.detach(grant.allocation_uuid) is False
    with pytest.raises(NotFound):
        two.backings(grant.allocation_uuid)


def test_a_look_reads_a_devices_table_as_often_whatever_is_attached(driver, make_grant, monkeypatch) -> None:
    """A table has all slices of a pool, and an agent looks several times a second."""
    reads, read = [], EmulatedDevice.permissions
    monkeypatch.setattr(EmulatedDevice, "permissions", lambda self: reads.append(self.path) or read(self))

    def reads_of_a_look() -> int:
        reads.clear()
        driver.attached()
        return len(reads)

    counts = []
    for index in range(4):
        driver.attach(make_grant(Extent(index, 1)))
        counts.append(reads_of_a_look())
    assert len(driver.attached()) == 4
    assert len(set(counts)) == 1


@pytest.mark.parametrize("at", [0, 12345, MIB - 1], ids=["first byte", "middle", "last byte"])
def test_a_byte_of_somebody_anywhere_in_a_slice_refuses_it(driver, device, make_grant, at) -> None:
    with (device.path / MEMORY).open("r+b") as memory:
        memory.seek(3 * MIB + at)
        memory.write(b"x")
    with pytest.raises(DeviceFailed, match=r"slice 3 .* not sanitised"):
        driver.attach(make_grant(Extent(2, 2)))
    assert driver.attached() == ()


def test_a_pool_that_no_driver_reaches(make_grant) -> None:
    with pytest.raises(HostUnusable, match="does not reach"):
        HostPools([]).attach(make_grant(Extent(0, 1)))


def test_drivers_are_loaded_by_name(conf, rig) -> None:
    assert load_drivers(conf).pools() == (rig.pool,)


def test_an_unknown_driver_stops_the_agent(conf) -> None:
    conf.set_override("drivers", ["emulated", "no-such"], group="agent")
    with pytest.raises(ValueError, match="no-such"):
        load_drivers(conf)


class CxlLike(EmulatedHostPool):
    """Reaches the device as CXL memory, and leaves zeroing to it."""

    def zeroing(self) -> HostZeroing:
        return HostZeroing.DEVICE


@pytest.mark.parametrize(("memory", "refused"), [("file", True), ("elsewhere", True), ("cxl", False), (None, False)])
def test_memory_that_nobody_zeroes_does_not_come_online(tmp_path, device, make_grant, memory, refused) -> None:
    """The controller refuses the host, too; None: an older one that does not know."""
    pools = HostPools([CxlLike(host="host1", state_dir=tmp_path / "state", device_paths=[str(device.path)])])
    grant = make_grant(Extent(0, 1))
    grant = replace(grant, device={key: value for key, value in grant.device.items() if key != "memory"})
    if memory:
        grant = replace(grant, device={**grant.device, "memory": memory})
    assert pools.zeroing() == {grant.pool_uuid: "device"}
    if refused:
        with pytest.raises(HostUnusable, match="sanitize = host"):
            pools.attach(grant)
        assert pools.attached() == ()
    else:
        assert pools.attach(grant)
