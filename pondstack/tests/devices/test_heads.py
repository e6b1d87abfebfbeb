"""Which hosts a device with dynamic capacity has heads for."""

from pathlib import Path

import pytest
from stevedore.driver import DriverManager

from pondstack.devices.dcd import DcdDevice
from pondstack.devices.emulated import create_device
from pondstack.devices.heads import HEADS, Head, read_heads, set_head
from pondstack.domain.errors import DeviceFailed, HostUnusable, InUse
from pondstack.domain.model import Extent

ONE, OTHER = Head("/run/one", "pool0", "here"), Head("/run/other", "pool0", "here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_device(tmp_path, 2, slice_mib=2, serial="s")
    return tmp_path


def test_heads_are_listed_changed_and_struck_out(folder: Path) -> None:
    assert read_heads(folder) == {}
    set_head(folder, "host1", ONE)
    set_head(folder, "host2", ONE)
    set_head(folder, "host1", OTHER)
    assert read_heads(folder) == {"host1": OTHER, "host2": ONE}
    for _ in range(2):
        set_head(folder, "host2", None)
    assert read_heads(folder) == {"host1": OTHER}


@pytest.mark.parametrize("head", [None, OTHER])
def test_the_head_of_a_host_that_holds_slices_stays(folder: Path, head: Head | None) -> None:
    """It is the only way to get them back."""
    device = create_device(folder, 2, slice_mib=2)
    set_head(folder, "host1", ONE)
    device.grant("host1", [Extent(1, 1)], tag="a", epoch=1)
    with pytest.raises(InUse, match=r"\[1\]"):
        set_head(folder, "host1", head)
    set_head(folder, "host1", ONE)
    device.revoke([1], tag="a", epoch=1)
    set_head(folder, "host1", head)


@pytest.mark.parametrize("text", ["", "[]", '{"host1": {}}', '{"host1": {"monitor": "/m"}}'])
def test_a_damaged_list_is_a_failed_device(folder: Path, text: str) -> None:
    (folder / HEADS).write_text(text)
    with pytest.raises(DeviceFailed, match="does not answer"):
        DcdDevice(folder).grant("host1", [Extent(0, 1)], tag="a", epoch=1)


def test_a_device_without_heads_lets_nobody_in(folder: Path) -> None:
    with pytest.raises(HostUnusable, match="device head"):
        DcdDevice(folder).grant("host1", [Extent(0, 1)], tag="a", epoch=1)
    DcdDevice(folder).sanitize(0, epoch=1)


def test_the_entry_point_loads_it(folder: Path) -> None:
    manager = DriverManager("pondstack.pool_devices", "dcd", invoke_on_load=True, invoke_args=(str(folder),))
    assert isinstance(manager.driver, DcdDevice)
    assert manager.driver.info().address["driver"] == "dcd"
