"""Memory of lent pages: the kernel keeps it out of dumps."""

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rdma.shm.memory import SharedMemory
from pondstack_rdma.tcp.memory import PrivateMemory
from pondstack_rdma.verbs.memory import PinnedMemory

_SMALL = 2**16


def flags_at(address: int) -> set[str]:
    """Return the flags of the mapping that holds an address; see proc_pid_smaps(5)."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return set(line.split()[1:])
    raise AssertionError(f"no mapping has {address:x}")


def address_of(view: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


@pytest.mark.parametrize("make", [SharedMemory, PrivateMemory, PinnedMemory])
def test_lent_pages_are_in_no_dump(make: Callable[[int], SharedMemory]) -> None:
    memory = make(_SMALL)
    try:
        assert "dd" in flags_at(address_of(memory.view))
    finally:
        memory.close()
