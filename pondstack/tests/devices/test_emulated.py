"""What only the emulated device promises: its folder, its sparseness, its durability."""

import json
import os
import stat
from pathlib import Path

import pytest
from stevedore.driver import DriverManager

from pondstack.devices import pool_uuid
from pondstack.devices.atomic_files import write_json
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.devices.emulated_files import first_written_byte
from pondstack.domain.errors import BadRequest, Conflict, DeviceFailed
from pondstack.domain.model import Extent

MIB = 2**20


def test_the_folder(tmp_path: Path) -> None:
    create_device(tmp_path / "d", 16, serial="s1")
    memory = (tmp_path / "d" / "memory").stat()
    assert memory.st_size == 16 * 1024 * MIB
    assert memory.st_blocks == 0
    assert json.loads((tmp_path / "d" / "device.json").read_text()) == {
        "serial": "s1",
        "slice_mib": 1024,
        "slices_total": 16,
        "memory": "file",
    }


def test_create_again_keeps_the_device(tmp_path: Path) -> None:
    first = create_device(tmp_path, 2, slice_mib=1)
    first.grant("host1", [Extent(0, 1)], tag="a", epoch=3)
    again = create_device(tmp_path, 2, slice_mib=1)
    assert again.info() == first.info()
    assert set(again.permissions()) == {0}


@pytest.mark.parametrize("change", [{"slices": 3}, {"slice_mib": 2}, {"serial": "other"}])
def test_create_refuses_another_shape(tmp_path: Path, change: dict) -> None:
    shape = {"slices": 2, "slice_mib": 1, "serial": "s"}
    create_device(tmp_path, **shape)
    with pytest.raises(Conflict, match="already is device s with 2 slices"):
        create_device(tmp_path, **(shape | change))


def test_create_needs_slices(tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        create_device(tmp_path, 0)


def test_two_devices_have_two_serials(tmp_path: Path) -> None:
    serials = {create_device(tmp_path / name, 1, slice_mib=1).info().serial for name in "ab"}
    assert len({pool_uuid(serial) for serial in serials}) == 2


def test_pool_uuid_never_changes() -> None:
    assert pool_uuid("pool-serial-0") == "0f21c06b-2e03-57a7-a5c6-d4018835f2d5"


@pytest.mark.parametrize("name", ["device.json", "permissions/1.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", '{"epoch": null}'])
def test_a_damaged_file_is_a_failed_device(tmp_path: Path, name: str, content: str) -> None:
    device = create_device(tmp_path, 1, slice_mib=1)
    (tmp_path / name).write_text(content)
    with pytest.raises(DeviceFailed, match="does not answer"):
        device.grant("host1", [Extent(0, 1)], tag="a", epoch=1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("device.json", '{"serial": "s", "slice_mib": "1", "slices_total": 2}'),
        ("device.json", '{"serial": "s", "slice_mib": 1, "slices_total": 1e9}'),
        ("device.json", '{"serial": 7, "slice_mib": 1, "slices_total": 2}'),
        ("device.json", "[" * 100_000),
        ("permissions/1.json", '{"epoch": "1", "permissions": {}}'),
        ("permissions/1.json", '{"epoch": true, "permissions": {}}'),
        ("permissions/1.json", '{"epoch": 1, "permissions": {"-1": {"host": "h", "tag": "a", "epoch": 1}}}'),
        ("permissions/1.json", '{"epoch": 1, "permissions": {"01": {"host": "h", "tag": "a", "epoch": 1}}}'),
        ("permissions/1.json", '{"epoch": 1, "permissions": {"0": {"host": ["h"], "tag": "a", "epoch": 1}}}'),
        ("permissions/1.json", '{"epoch": 1, "permissions": {"0": null}}'),
        ("permissions/1.json", "[" * 100_000),
    ],
)
def test_a_table_that_no_controller_writes_lets_nobody_in(tmp_path: Path, name: str, content: str) -> None:
    device = create_device(tmp_path, 2, slice_mib=1)
    (tmp_path / name).write_text(content)
    with pytest.raises(DeviceFailed, match=str(tmp_path)):
        device.grant("h", [Extent(0, 1)], tag="b", epoch=2)


def test_a_truncated_memory_file_is_a_failed_device(tmp_path: Path) -> None:
    device = create_device(tmp_path, 2, slice_mib=1)
    with open(tmp_path / "memory", "rb+") as memory:
        memory.truncate(MIB)
    with pytest.raises(DeviceFailed, match="1048576 bytes for 2 slices"):
        device.info()


def test_sanitize_gives_the_blocks_back(tmp_path: Path) -> None:
    device = create_device(tmp_path, 2, slice_mib=1)
    with open(tmp_path / "memory", "rb+") as memory:
        memory.write(b"x" * 2 * MIB)
    device.sanitize(0, epoch=1)
    device.sanitize(1, epoch=1)
    assert (tmp_path / "memory").stat().st_blocks == 0


def test_a_failed_write_leaves_the_old_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.json"
    write_json(path, {"old": True})

    def fail(_handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pondstack.devices.atomic_files.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_json(path, {"new": True})
    assert json.loads(path.read_text()) == {"old": True}
    assert [item.name for item in tmp_path.iterdir()] == ["table.json"]


@pytest.mark.parametrize("offset", [0, 4095, MIB - 1, MIB, 3 * MIB - 1])
def test_one_written_byte_is_found(tmp_path: Path, offset: int) -> None:
    create_device(tmp_path, 4, slice_mib=1)
    with open(tmp_path / "memory", "rb+") as memory:
        memory.seek(offset)
        memory.write(b"\1")
    found = first_written_byte(tmp_path, 0, 3 * MIB)
    assert found is not None
    assert found <= offset < found + MIB
    assert first_written_byte(tmp_path, 3 * MIB, 4 * MIB) is None


def test_written_zeros_count_as_zero(tmp_path: Path) -> None:
    create_device(tmp_path, 2, slice_mib=1)
    with open(tmp_path / "memory", "rb+") as memory:
        memory.write(bytes(2 * MIB))
    assert first_written_byte(tmp_path, 0, 2 * MIB) is None


def test_the_entry_point_loads_it(tmp_path: Path) -> None:
    create_device(tmp_path, 1, slice_mib=1, serial="s")
    manager = DriverManager("pondstack.pool_devices", "emulated", invoke_on_load=True, invoke_args=(str(tmp_path),))
    assert isinstance(manager.driver, EmulatedDevice)
    assert manager.driver.info().serial == "s"


def test_nobody_else_gets_at_its_memory(tmp_path: Path) -> None:
    """It holds what all guests of the device have: no other user of the machine may read it, whatever the umask."""
    before = os.umask(0)
    try:
        create_device(tmp_path / "d", 2, slice_mib=1).grant("host1", (Extent(0, 1),), tag="t", epoch=1)
        files = [path for path in (tmp_path / "d").iterdir() if path.is_file()]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert modes.keys() >= {"memory", "device.json"}
    assert set(modes.values()) == {0o600}


def test_a_device_of_before_is_closed_to_others_and_stays_open_to_a_group(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    create_device(folder, 2, slice_mib=1, serial="s")
    folder.chmod(0o755)
    (folder / "memory").chmod(0o664)
    create_device(folder, 2, slice_mib=1, serial="s")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "memory")] == [0o750, 0o660]
