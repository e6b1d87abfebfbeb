"""What moving another process's pages needs root for, by oslo.privsep. An agent that stays root does it itself."""

import ctypes
import errno
import functools
import os
import re
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

from oslo_privsep import capabilities

from pondstack_agent.host import memory_users
from pondstack_agent.privilege.context import Context

# Moving pages that others map too; looking into and acting on processes of other users. Their cgroups are root's.
context = Context("mitigation", __name__, [capabilities.CAP_SYS_NICE, capabilities.CAP_SYS_PTRACE])

CGROUPS = "/sys/fs/cgroup"
_NODES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_MOVE_PAGES = 279  # asm/unistd_64.h
_MOVE_ALL = 4  # linux/mempolicy.h: MPOL_MF_MOVE_ALL
_PIECE = 512
"""Addresses: a huge page."""
_WORD = 8
"""Bytes of an address."""
_SPAN = 1 << 24
"""Bytes of memory whose addresses differ in their three lower bytes only."""
_LIBC = ctypes.CDLL(None, use_errno=True)


@context.entrypoint
def read_maps(pid: int) -> tuple[str, str]:
    """Return maps and numa_maps of a guest's process, empty when it has ended."""
    _check_guest(pid)
    try:
        folder = Path("/proc", str(int(pid)))
        return (folder / "maps").read_text(), (folder / "numa_maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", ""


@context.entrypoint
def read_numa_maps(pid: int) -> str:
    """Return numa_maps of a guest's process, empty when it has ended."""
    _check_guest(pid)
    try:
        return Path("/proc", str(int(pid)), "numa_maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@context.entrypoint
def move_pages(pid: int, ranges: Sequence[tuple[int, int, int]], node: int) -> str:
    """Move the pages at addresses (start, end, step) to a node; return '' or what the kernel said.

    Addresses without a page are skipped. The kernel stops a call at pages that do not move now; a later call, or
    `bind_cgroup`, gets at what comes behind them.
    """
    addresses = _addresses(ranges)
    count = len(addresses)
    _check_guest(pid)
    left, trouble = _call(pid, addresses, array("i", [node]) * count, array("i", [0]) * count)
    return trouble or (f"{left} addresses were left" if left else "")


@context.entrypoint
def gather_pages(pid: int, ranges: Sequence[tuple[int, int, int]], node: int, at_most: int) -> tuple[int, int, str]:
    """Move the few pages at addresses (start, end, step) that are elsewhere to a node, `at_most` so many addresses.

    Returns how many moved, how many of them stayed, and why. It looks first where pages are, which takes longer than
    `move_pages` where most are to move. What the kernel leaves behind a page that does not move now is tried again in
    pieces, so that one page keeps few others.
    """
    _check_guest(pid)
    addresses = _addresses(ranges)
    left, trouble = _elsewhere(pid, addresses, node)
    left = left[:at_most]
    asked = len(left)
    for piece in (asked, _PIECE):
        if not left:
            break
        said = [_move(pid, left[start : start + piece], node) for start in range(0, len(left), piece)]
        trouble = next(filter(None, said), "")
        if not trouble:
            return asked, 0, ""
        left, ended = _elsewhere(pid, left, node)
        if ended:
            return 0, 0, ended
    return asked - len(left), len(left), trouble if left or not asked else ""


def _check_guest(pid: int) -> None:
    """Raise ValueError for a process that is there and no guest: nobody else's pages are moved or told.

    To the kernel 0 is the process that asks.
    """
    if int(pid) < 1 or not (memory_users.is_guest(pid) or memory_users.has_ended(pid)):
        raise ValueError(f"process {pid} is no guest")


def _is_guests_cgroup(folder: str) -> bool:
    """Tell whether a cgroup and those below it hold guests, and nobody else."""
    if not folder.startswith(f"{CGROUPS}/") or ".." in folder.split("/"):
        return False
    found = [int(pid) for path in Path(folder).rglob("cgroup.procs") for pid in _processes(path)]
    return bool(found) and all(map(memory_users.is_guest, found))


def _processes(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return []  # a group of threads, whose processes are listed above it


def _addresses(ranges: Sequence[tuple[int, int, int]]) -> "array[int]":
    """Return each address.

    A Python number for each, a million for 4 GiB, would show in the time in which their pages move. They are therefore
    made of bytes: the lower ones are the same in each span, the higher ones throughout it. A page begins at a multiple
    of its size, `step`.
    """
    addresses = array("Q")
    for start, end, step in ranges:
        size = max(_SPAN, step)
        for span in range(start - start % size, end, size):
            first, last = max(start - span, 0) // step, min(end - span, size) // step
            words = bytearray(_lower_bytes(step)[first * _WORD : last * _WORD])
            for place, byte in enumerate(span.to_bytes(_WORD, sys.byteorder)):
                if byte:
                    words[place::_WORD] = bytes([byte]) * (last - first)
            addresses.frombytes(words)
    return addresses


@functools.cache
def _lower_bytes(step: int) -> bytes:
    """Return the addresses of the first span."""
    return array("Q", range(0, max(_SPAN, step), step)).tobytes()


def _elsewhere(pid: int, addresses: "array[int]", node: int) -> tuple["array[int]", str]:
    """Return the addresses of pages on other nodes, and what the kernel said when it does not tell."""
    status = array("i", [0]) * len(addresses)
    _, trouble = _call(pid, addresses, None, status)
    if trouble:
        return array("Q"), trouble
    return array("Q", (address for address, at in zip(addresses, status, strict=True) if at >= 0 and at != node)), ""


def _move(pid: int, addresses: "array[int]", node: int) -> str:
    """Return '' when the kernel says that all are on the node. Of a huge page it says -EBUSY for all parts but one."""
    status = array("i", [0]) * len(addresses)
    left, trouble = _call(pid, addresses, array("i", [node]) * len(addresses), status)
    return trouble or ("they are busy or pinned" if left or min(status) < 0 else "")


def _call(pid: int, addresses: "array[int]", nodes: "array[int] | None", status: "array[int]") -> tuple[int, str]:
    """Call move_pages(2). Without nodes it only writes where each page is, below zero where there is none."""
    pointers = [None if item is None else ctypes.c_void_p(item.buffer_info()[0]) for item in (addresses, nodes, status)]
    count, flags = ctypes.c_ulong(len(addresses)), ctypes.c_int(_MOVE_ALL)
    done = _LIBC.syscall(_MOVE_PAGES, ctypes.c_int(pid), count, *pointers, flags)
    return (0, os.strerror(ctypes.get_errno())) if done < 0 else (done, "")


@context.entrypoint
def bind_cgroup(folder: str, nodes: str) -> str:
    """Write cpuset.mems of a cgroup; return '' or what the kernel said.

    The kernel rewrites the memory policies of all in it, moves the pages that are elsewhere, and then returns.
    """
    if not _NODES.fullmatch(nodes) or not _is_guests_cgroup(folder):
        raise ValueError(f"{folder} is no cgroup of a guest, or {nodes!r} no list of nodes")
    try:
        Path(folder, "cpuset.mems").write_text(nodes)
    except OSError as error:
        return error.strerror or str(error)
    return ""
