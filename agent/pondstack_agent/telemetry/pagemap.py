"""How much of a range of another process is there, as the kernel's page tables say. Effects only.

PAGEMAP_SCAN (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst) answers by ranges of pages; older kernels have one
64-bit entry per page to be read. Both need CAP_SYS_PTRACE or the process's own user.
"""

import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

# struct pm_scan_arg of <linux/fs.h>, twelve __u64: size, flags, start, end, walk_end, vec, vec_len, max_pages,
# category_inverted, category_mask, category_anyof_mask, return_mask.
_ARGUMENT = struct.Struct("=12Q")
_WALK_END = 4
# _IOWR('f', 16, struct pm_scan_arg): direction 3 (read and write), size of the argument, type, number.
PAGEMAP_SCAN = (3 << 30) | (_ARGUMENT.size << 16) | (ord("f") << 8) | 16
PRESENT, SWAPPED, HUGE = 1 << 3, 1 << 4, 1 << 6
"""PAGE_IS_PRESENT, PAGE_IS_SWAPPED, PAGE_IS_HUGE."""

# struct page_region: start, end, categories.
_REGION_WORDS = 3
_REGIONS = 512
"""No more than the kernel's own buffer: with more, walk_end stays where that buffer was full for the last time (6.18),
and who goes on from there counts the rest twice.
"""
_STEP_BYTES = 2**30
"""The kernel holds the process's mmap lock (shared) for a call: no longer than for this much."""

_ENTRY_BYTES = 8
_ENTRIES = 32768
_ABSENT = bytes(range(64))
"""Highest bytes of a pagemap entry without bit 63 (present) and bit 62 (swapped)."""


@dataclass(frozen=True, slots=True)
class Present:
    """Bytes that have a page, in memory or in swap; of them those in huge pages, None where the kernel cannot say."""

    touched_bytes: int = 0
    huge_bytes: int | None = 0


def look(pid: int, start: int, end: int, proc: Path = PROC) -> Present:
    """Return what is present from address `start` to `end` - 1 of a process; raises OSError."""
    handle = os.open(proc / str(pid) / "pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            return by_ranges(handle, start, end)
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EINVAL):
                raise
            return by_entries(handle, start, end)
    finally:
        os.close(handle)


def by_ranges(handle: int, start: int, end: int) -> Present:
    """Look by PAGEMAP_SCAN; raises OSError, ENOTTY before Linux 6.7."""
    touched = huge = 0
    for words in _regions(handle, start, end):
        starts, ends, categories = (words[place::_REGION_WORDS] for place in range(_REGION_WORDS))
        touched += sum(ends) - sum(starts)
        huge += sum(last - first for first, last, found in zip(starts, ends, categories, strict=True) if found & HUGE)
    return Present(touched, huge)


def _regions(handle: int, start: int, end: int) -> Iterator[list[int]]:
    """Yield the words of one answer of the kernel after the other: first address, end, categories of each region."""
    regions = (ctypes.c_uint64 * (_REGION_WORDS * _REGIONS))()
    at = start
    while at < end:
        step = min(end, at + _STEP_BYTES)
        argument = bytearray(
            _ARGUMENT.pack(
                _ARGUMENT.size,
                0,
                at,
                step,
                0,
                ctypes.addressof(regions),
                _REGIONS,
                0,
                0,
                0,
                PRESENT | SWAPPED,
                PRESENT | SWAPPED | HUGE,
            )
        )
        count = fcntl.ioctl(handle, PAGEMAP_SCAN, argument)
        yield regions[: count * _REGION_WORDS]
        at = _ARGUMENT.unpack(argument)[_WALK_END]


def by_entries(handle: int, start: int, end: int) -> Present:
    """Look by the entries of single pages, on any kernel; huge pages are not told apart."""
    page = os.sysconf("SC_PAGESIZE")
    at, last, pages = start // page * _ENTRY_BYTES, end // page * _ENTRY_BYTES, 0
    while at < last:
        entries = os.pread(handle, min(last - at, _ENTRIES * _ENTRY_BYTES), at)
        if not entries:
            break
        highest = entries[_ENTRY_BYTES - 1 :: _ENTRY_BYTES]
        pages += len(highest.translate(None, _ABSENT))
        at += len(entries)
    return Present(pages * page, None)


def allocated_bytes(path: Path, start: int, end: int) -> int:
    """Return how many bytes of a file's range have storage (what is not a hole); raises OSError.

    None of a device, such as a dax device: it has no holes, and its answer to a look for them is no place in it.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return 0
        at, found = start, 0
        while at < end:
            try:
                data = os.lseek(handle, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break  # nothing but a hole up to the file's end
                raise
            hole = os.lseek(handle, data, os.SEEK_HOLE)
            found += max(0, min(hole, end) - min(data, end))
            at = hole
        return found
    finally:
        os.close(handle)
