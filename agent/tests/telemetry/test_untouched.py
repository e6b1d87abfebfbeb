"""Untouched memory of real processes on this machine's kernel: the figure is what the process really left alone."""

import errno
import mmap
import os
from pathlib import Path

import pytest

from pondstack_agent.telemetry import pagemap, untouched
from pondstack_agent.telemetry.guests import Node
from pondstack_agent.telemetry.mappings import match, parse_maps
from pondstack_agent.telemetry.pagemap import Present

from .conftest import MIB, Guest, GuestMaker

PAGE = 4096
MAP_NORESERVE = 0x4000  # asm-generic/mman.h
EXACT = 0.02
"""What the figure may be off by, of what was touched."""

pytestmark = pytest.mark.usefixtures("root")


def figures(guest: Guest) -> list[untouched.Figure]:
    return untouched.measure(guest.pid, untouched.groups(guest.pid))


def agrees(figure: untouched.Figure, pages: int) -> bool:
    return figure.touched_bytes is not None and abs(figure.touched_bytes - pages * PAGE) <= EXACT * pages * PAGE


def test_the_figure_is_what_the_guest_touched(start_guest: GuestMaker) -> None:
    guest = start_guest()
    local, pool = figures(guest)
    assert (local.size_bytes, pool.size_bytes) == (guest.local_mib * MIB, guest.pool_mib * MIB)
    if local.huge_bytes:
        pytest.skip("this kernel gives memory without a name in huge pages, which the figure says")
    assert agrees(local, guest.local_pages)
    assert agrees(pool, guest.pool_pages)
    assert agrees(untouched.whole([local, pool]), guest.local_pages + guest.pool_pages)


def test_pool_memory_is_a_range_of_a_devices_file(start_guest: GuestMaker, tmp_path: Path) -> None:
    file = tmp_path / "memory"
    with file.open("wb") as device:
        device.truncate(192 * MIB)
        device.seek(8 * MIB)
        device.write(bytes(4 * MIB))  # somebody else's slice
    guest = start_guest(file=file, offset_mib=64)
    assert agrees(figures(guest)[1], guest.pool_pages)


def test_pages_that_are_in_no_page_table_count(start_guest: GuestMaker) -> None:
    """As swapped-out pages of shared memory, or those that vhost-user wrote: the file has them, the process has not."""
    guest = start_guest()
    (group,) = untouched.groups(guest.pid)[1:]
    file = Path("/proc", str(guest.pid), "map_files", group.ranges[0].name)
    before = figures(guest)[1].touched_bytes
    assert before is not None
    handle = os.open(file, os.O_RDWR)
    os.pwrite(handle, bytes(64 * MIB), 0)
    os.close(handle)
    assert figures(guest)[1].touched_bytes == 64 * MIB > before


def test_a_device_has_no_holes_to_look_for() -> None:
    """A dax device answers as this one: whatever is looked for is at its first byte."""
    handle = os.open("/dev/null", os.O_RDONLY)
    assert os.lseek(handle, PAGE, os.SEEK_DATA) == 0
    os.close(handle)
    assert pagemap.allocated_bytes(Path("/dev/null"), 0, 4 * PAGE) == 0


def test_both_ways_to_ask_the_kernel_agree(start_guest: GuestMaker) -> None:
    guest = start_guest()
    (range_,) = untouched.groups(guest.pid)[0].ranges
    handle = os.open(f"/proc/{guest.pid}/pagemap", os.O_RDONLY)
    try:
        entries = pagemap.by_entries(handle, range_.start, range_.end)
        try:
            ranges = pagemap.by_ranges(handle, range_.start, range_.end)
        except OSError as error:
            pytest.skip(f"this kernel has no PAGEMAP_SCAN (Linux 6.7): {error}")
    finally:
        os.close(handle)
    assert entries.touched_bytes == ranges.touched_bytes > 0
    assert entries.huge_bytes is None


def test_an_old_kernel_is_asked_the_old_way(start_guest: GuestMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Present:
        raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")

    guest = start_guest()
    monkeypatch.setattr(pagemap, "by_ranges", refuse)
    local, pool = figures(guest)
    assert agrees(pool, guest.pool_pages)
    assert (local.huge_bytes, untouched.whole([local, pool]).huge_bytes) == (None, None)


def test_preallocated_memory_has_no_figure(start_guest: GuestMaker) -> None:
    found = figures(start_guest(more=("-mem-prealloc",)))
    assert [figure.touched_bytes for figure in found] == [None, None]
    whole = untouched.whole(found)
    assert whole.touched_bytes is None
    assert whole.reason.startswith("node 0: preallocated")


def test_huge_pages_that_are_reserved_have_no_figure() -> None:
    """Mapped without reserving any, so that the machine needs none."""
    handle = os.memfd_create("memory-backend-memfd", os.MFD_HUGETLB)
    try:
        os.ftruncate(handle, 64 * MIB)
        memory = mmap.mmap(handle, 64 * MIB, flags=mmap.MAP_SHARED | MAP_NORESERVE)
    except OSError as error:
        pytest.skip(f"this kernel gives no huge pages: {error}")
    finally:
        os.close(handle)
    maps = Path("/proc/self/maps").read_text()
    found = match([Node(0, 64 * MIB, shared=True)], parse_maps(maps), dict)
    (figure,) = untouched.measure(os.getpid(), found)
    memory.close()
    assert figure.touched_bytes is None
    assert figure.reason.startswith("in huge pages of")


def test_a_process_that_has_ended_is_an_error_not_a_figure(start_guest: GuestMaker) -> None:
    guest = start_guest()
    found = untouched.groups(guest.pid)
    guest.kill()
    with pytest.raises(OSError):
        untouched.measure(guest.pid, found)
