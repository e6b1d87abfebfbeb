"""What the kernel says is mapped."""

import mmap
import os
from pathlib import Path

import pytest

from pondstack.devices.mappings import file_id, is_mapped, mapped_ranges, overlaps

PAGE = mmap.PAGESIZE


def test_own_mapping_is_found_with_its_offset(tmp_path: Path) -> None:
    path, other = tmp_path / "a file", tmp_path / "other"
    for item in (path, other):
        item.write_bytes(bytes(8 * PAGE))
    wanted = file_id(path)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 2 * PAGE, offset=3 * PAGE):
        found = mapped_ranges([wanted, file_id(other)])
        assert found == {wanted: [range(3 * PAGE, 5 * PAGE)], file_id(other): []}
    assert mapped_ranges([wanted]) == {wanted: []}


def test_a_deleted_name_is_still_mapped(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_bytes(bytes(PAGE))
    wanted = file_id(path)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), PAGE):
        path.unlink()
        assert mapped_ranges([wanted]) == {wanted: [range(PAGE)]}


def fake_process(proc: Path, pid: int, text: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "maps").write_text(text)


def test_the_same_inode_on_another_device_is_another_file(tmp_path: Path) -> None:
    fake_process(tmp_path, 10, "7f00-8f00 rw-s 00001000 fd:01 77    /pool/memory\n")
    assert mapped_ranges([(os.makedev(0xFD, 1), 77)], tmp_path) == {(os.makedev(0xFD, 1), 77): [range(0x1000, 0x2000)]}
    assert mapped_ranges([(os.makedev(0xFD, 2), 77)], tmp_path) == {(os.makedev(0xFD, 2), 77): []}


def test_processes_that_vanish_or_hide_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_process(tmp_path, 10, "7f00-8f00 rw-s 00000000 00:10 5    /pool/memory\n")
    (tmp_path / "11").mkdir()  # ended between the listing and the look
    for pid in (12, 13):
        fake_process(tmp_path, pid, "")
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if "12" in path.parts:
            raise ProcessLookupError
        if "13" in path.parts:
            raise PermissionError
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert len(mapped_ranges([(0x10, 5)], tmp_path)[0x10, 5]) == 1


def test_no_file_costs_no_look(tmp_path: Path) -> None:
    assert mapped_ranges([], tmp_path / "no such folder") == {}


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(0, 10, False), (0, 11, True), (15, 16, True), (19, 30, True), (20, 30, False)]
)
def test_overlaps(start: int, end: int, expected: bool) -> None:
    assert overlaps([range(10, 20)], start, end) is expected


@pytest.mark.parametrize(
    ("path", "found"), [("/dev/dax0.1", True), ("/dev/dax0.2", True), ("/dev/dax0", False), ("/dev/dax0.10", False)]
)
def test_a_device_is_found_by_its_name(tmp_path: Path, path: str, found: bool) -> None:
    fake_process(tmp_path, 10, "7f00-8f00 rw-s 00000000 00:05 77    /dev/dax0.1\n7f00-8f00 rw-p 00000000 00:00 0\n")
    fake_process(tmp_path, 11, "7f00-8f00 rw-s 00000000 00:2a 9     /dev/dax0.2 (deleted)\n")
    assert is_mapped(path, tmp_path) is found


def test_own_mapping_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "device"
    path.write_bytes(bytes(PAGE))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), PAGE):
        assert is_mapped(str(path))
    assert not is_mapped(str(path))
