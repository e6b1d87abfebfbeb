"""A host that was fenced at the emulated device: neither its agent nor the head of a guest gets in again."""

from pathlib import Path

import pytest

from pondstack.devices import pool_uuid
from pondstack.devices.emulated import create_device
from pondstack.domain.errors import PermissionHeld
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.emulated import EmulatedHostPool
from pondstack_agent.qemu.wrapper import Refused, check_permission, find_attachment


def test_a_fenced_host_is_refused_by_its_driver_and_by_the_head_of_a_guest(tmp_path: Path) -> None:
    device = create_device(tmp_path / "pool0", 4, slice_mib=1)
    extents, uuid = (Extent(0, 2),), pool_uuid(device.info().serial)
    grant = Grant("a1", "vm1", "h1", uuid, "pool0", dict(device.info().address), 1, extents, epoch=1)
    pool = EmulatedHostPool(host="h1", state_dir=tmp_path / "state", device_paths=[str(device.path)])
    device.grant("h1", extents, tag="a1", epoch=1)
    pool.attach(grant)
    found = find_attachment(tmp_path / "state", "vm1")
    assert found
    check_permission(found[1], "h1")
    device.fence("h1", [0, 1], epoch=1)
    with pytest.raises(Refused):
        check_permission(found[1], "h1")
    with pytest.raises(PermissionHeld, match="nobody"):
        pool.attach(grant)
    # What it had is still on its list, idle, and goes without any word of the device.
    assert [item.in_use for item in pool.attached()] == [False]
    assert pool.detach("a1")
