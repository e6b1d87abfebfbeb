"""Memory of keys and of lent pages: what the kernel keeps of it out of swap, dumps and children."""

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rdma.sealing import KEY_BYTES, PageSealer, new_key
from pondstack_rdma.secret_memory import random_secret
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


def test_a_key_is_locked_and_in_no_dump() -> None:
    key = new_key()
    assert {"lo", "dd", "wf"} <= flags_at(address_of(key))
    assert len(key) == KEY_BYTES
    assert bytes(key) not in (bytes(KEY_BYTES), bytes(new_key()))
    PageSealer(key, "a VM", 1)


def test_a_key_is_zeros_in_a_child() -> None:
    secret = random_secret(64)
    child = os.fork()
    if not child:
        os._exit(0 if bytes(secret) == bytes(64) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bytes(secret) != bytes(64)


@pytest.mark.parametrize("make", [SharedMemory, PrivateMemory, PinnedMemory])
def test_lent_pages_are_in_no_dump(make: Callable[[int], SharedMemory]) -> None:
    memory = make(_SMALL)
    try:
        assert "dd" in flags_at(address_of(memory.view))
    finally:
        memory.close()
