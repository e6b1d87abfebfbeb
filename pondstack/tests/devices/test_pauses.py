"""A former leader that was paused in the middle of a command, at each point where it may be, wakes and does no harm."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack.devices import emulated_files as files
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.domain.errors import InUse, PermissionHeld, StaleEpoch
from pondstack.domain.model import Extent

OLD, NEW = 1, 2
MIB = 2**20


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmulatedDevice:
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.05)
    made = create_device(tmp_path / "pool0", 4, slice_mib=1)
    made.raise_epoch(OLD)
    return made


@pytest.fixture
def newer(device: EmulatedDevice) -> EmulatedDevice:
    """The same device as the next leader has it."""
    return EmulatedDevice(device.path)


def write(device: EmulatedDevice, index: int, data: bytes = b"guest") -> None:
    with open(device.path / "memory", "rb+") as memory:
        memory.seek(index * MIB)
        memory.write(data)


def content(device: EmulatedDevice, index: int) -> bytes:
    return (device.path / "memory").read_bytes()[index * MIB : index * MIB + 5]


def pause_after_reading(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Have the next reader of the table sleep on what it read while `meanwhile` happens."""
    read = files.read_table

    def paused(path: Path):
        found = read(path)
        monkeypatch.setattr(files, "read_table", read)
        meanwhile()
        return found

    monkeypatch.setattr(files, "read_table", paused)


def test_the_new_leader_s_first_command_shuts_the_old_one_out(device, newer) -> None:
    newer.raise_epoch(NEW)
    for command in (
        lambda: device.grant("h1", [Extent(0, 1)], tag="a", epoch=OLD),
        lambda: device.revoke([0], tag="a", epoch=OLD),
        lambda: device.sanitize(0, epoch=OLD),
        lambda: device.raise_epoch(OLD),
    ):
        with pytest.raises(StaleEpoch):
            command()


def test_a_grant_that_slept_on_its_look_at_the_table(device, newer, monkeypatch) -> None:
    def meanwhile() -> None:
        newer.raise_epoch(NEW)
        newer.grant("h2", [Extent(1, 1)], tag="b", epoch=NEW)

    pause_after_reading(monkeypatch, meanwhile)
    with pytest.raises(StaleEpoch):
        device.grant("h1", [Extent(0, 1)], tag="a", epoch=OLD)
    assert {index: entry.tag for index, entry in device.permissions().items()} == {1: "b"}


def test_the_new_leader_grants_what_the_old_one_sleeps_on(device, newer, monkeypatch) -> None:
    """The client has repeated its operation: the same allocation, from the next leader."""

    def meanwhile() -> None:
        newer.raise_epoch(NEW)
        newer.grant("h1", [Extent(0, 2)], tag="a", epoch=NEW)

    pause_after_reading(monkeypatch, meanwhile)
    with pytest.raises(StaleEpoch):
        device.grant("h1", [Extent(0, 2)], tag="a", epoch=OLD)
    assert {entry.epoch for entry in device.permissions().values()} == {NEW}


def test_a_revoke_that_slept_takes_nobody_s_permission(device, newer, monkeypatch) -> None:
    """Nor does it bring back the table of its time, in which the new grant was not."""
    device.grant("h1", [Extent(0, 1)], tag="a", epoch=OLD)

    def meanwhile() -> None:
        newer.raise_epoch(NEW)
        newer.grant("h2", [Extent(1, 2)], tag="b", epoch=NEW)

    pause_after_reading(monkeypatch, meanwhile)
    with pytest.raises(StaleEpoch):
        device.revoke([0], tag="a", epoch=OLD)
    assert {index: entry.tag for index, entry in device.permissions().items()} == {0: "a", 1: "b", 2: "b"}


def test_a_change_that_slept_for_very_long(device, newer, monkeypatch) -> None:
    """The version that it would have made was made by others and swept away since."""

    def meanwhile() -> None:
        for epoch in range(NEW, NEW + 3 * files.KEPT_VERSIONS):
            newer.raise_epoch(epoch)
        newer.grant("h2", [Extent(0, 1)], tag="b", epoch=epoch)

    pause_after_reading(monkeypatch, meanwhile)
    with pytest.raises(StaleEpoch):
        device.grant("h1", [Extent(0, 1)], tag="a", epoch=OLD)
    assert device.permissions()[0].tag == "b"
    assert len(list((device.path / files.PERMISSIONS).iterdir())) <= files.KEPT_VERSIONS + 1


def test_a_sanitiser_that_slept_before_it_zeroed(device, newer, monkeypatch) -> None:
    """It holds no lock but its slice's: the new leader goes on with all others, and gives this one to nobody."""
    write(device, 0)
    punch = EmulatedDevice._punch

    def paused(self: EmulatedDevice, start: int, size: int) -> None:
        monkeypatch.setattr(EmulatedDevice, "_punch", punch)
        newer.raise_epoch(NEW)
        newer.grant("h2", [Extent(1, 3)], tag="b", epoch=NEW)
        for command in (
            lambda: newer.sanitize(0, epoch=NEW),
            lambda: newer.grant("h2", [Extent(0, 1)], tag="c", epoch=NEW),
        ):
            with pytest.raises(InUse, match="another controller"):
                command()
        punch(self, start, size)

    monkeypatch.setattr(EmulatedDevice, "_punch", paused)
    device.sanitize(0, epoch=OLD)  # its word counts for nothing: the ledger refuses it
    newer.sanitize(0, epoch=NEW)
    newer.grant("h2", [Extent(0, 1)], tag="c", epoch=NEW)


def test_a_sanitiser_that_slept_before_its_look_finds_the_slice_taken(device, newer) -> None:
    """The harm that must never be done: zeroing what a guest has meanwhile."""
    newer.raise_epoch(NEW)
    newer.sanitize(0, epoch=NEW)
    newer.grant("h2", [Extent(0, 1)], tag="b", epoch=NEW)
    write(device, 0)
    with pytest.raises(StaleEpoch):
        device.sanitize(0, epoch=OLD)
    assert content(device, 0) == b"guest"


def test_even_of_its_own_epoch_nobody_zeroes_what_is_granted(device) -> None:
    device.grant("h1", [Extent(0, 1)], tag="a", epoch=OLD)
    write(device, 0)
    with pytest.raises(PermissionHeld):
        device.sanitize(0, epoch=OLD)
    assert content(device, 0) == b"guest"


def test_a_sanitiser_that_dies_leaves_no_lock(device, newer, monkeypatch) -> None:
    def dies(_self: EmulatedDevice, _start: int, _size: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmulatedDevice, "_punch", dies)
        with pytest.raises(KeyboardInterrupt):
            device.sanitize(0, epoch=OLD)
    newer.sanitize(0, epoch=NEW)


def test_a_device_of_the_former_format_goes_on(device) -> None:
    """One file, permissions.json; the first change makes it the first version."""
    device.grant("h1", [Extent(0, 1)], tag="a", epoch=3)
    _version, table = files.read_table(device.path)
    for path in (device.path / files.PERMISSIONS).iterdir():
        path.unlink()
    (device.path / files.PERMISSIONS).rmdir()
    files.write_json(device.path / files.FORMER_PERMISSIONS, table)
    assert device.permissions()[0].tag == "a"
    with pytest.raises(StaleEpoch):
        device.raise_epoch(2)
    device.raise_epoch(4)
    assert device.permissions()[0].tag == "a"
    assert not (device.path / files.FORMER_PERMISSIONS).exists()
