"""Which memory a process uses: nodes, policies and where pages are, by system calls. Effects only (mbind(2))."""

import ctypes
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from pondstack.domain.errors import HostUnusable

NODES = Path("/sys/devices/system/node")
_SYSCALLS = {
    "x86_64": {"mbind": 237, "set_mempolicy": 238, "move_pages": 279},
    "aarch64": {"mbind": 235, "set_mempolicy": 237, "move_pages": 239},
}
_BIND, _PREFERRED, _STRICT = 2, 1, 1
"""MPOL_BIND, MPOL_PREFERRED, MPOL_MF_STRICT."""
_MOST_NODES = 1024
_WORD_BITS = 64


def nodes(folder: Path = NODES) -> list[int]:
    """Return the nodes with memory."""
    return parse_list((folder / "has_memory").read_text())


def cpus(node: int, folder: Path = NODES) -> list[int]:
    """Return the CPUs of a node."""
    return parse_list((folder / f"node{node}" / "cpulist").read_text())


def free_mib(node: int, folder: Path = NODES) -> int:
    """Return the free memory of a node."""
    for line in (folder / f"node{node}" / "meminfo").read_text().splitlines():
        words = line.split()
        if words[2] == "MemFree:":
            return int(words[3]) // 1024
    raise HostUnusable(f"node {node} does not tell its free memory")


def parse_list(text: str) -> list[int]:
    """Return the numbers of the kernel's lists, as 0-3,8."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def prefer(node: int) -> None:
    """Have this thread's new memory on a node while there is room. Raises HostUnusable."""
    _call("set_mempolicy", _PREFERRED, *_mask(node))


def bind(address: int, size: int, node: int) -> None:
    """Have a range, which nobody has touched yet, on a node only. Raises HostUnusable."""
    pointer, bits = _mask(node)
    _call("mbind", ctypes.c_void_p(address), ctypes.c_ulong(size), _BIND, pointer, bits, _STRICT)


def where(addresses: Sequence[int]) -> list[int]:
    """Return the node of each page, below zero where there is none. Raises HostUnusable."""
    count = len(addresses)
    pages = (ctypes.c_void_p * count)(*addresses)
    status = (ctypes.c_int * count)()
    _call("move_pages", 0, ctypes.c_ulong(count), pages, None, status, 0)
    return list(status)


def _mask(node: int) -> tuple[ctypes.Array[ctypes.c_ulong], ctypes.c_ulong]:
    words = (ctypes.c_ulong * (_MOST_NODES // _WORD_BITS))()
    words[node // _WORD_BITS] = 1 << node % _WORD_BITS
    return words, ctypes.c_ulong(_MOST_NODES)


def _call(name: str, *arguments: object) -> None:
    number = _SYSCALLS.get(platform.machine(), {}).get(name)
    if number is None:
        raise HostUnusable(f"pondstack-sample does not know {name}(2) of {platform.machine()}; use --synthetic")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise HostUnusable(f"{name}(2): {os.strerror(ctypes.get_errno())}")
