"""A process that stands for a guest of a consumer: its memory is bound to one node of the host.

Arguments: -uuid CONSUMER NODE MIB TEXT. Tells what it finds in its memory, writes, stays until its input ends.
"""

import ctypes
import mmap
import sys

_BIND = 2  # linux/mempolicy.h
_MBIND = 237  # asm/unistd_64.h


def bound_memory(node: int, size_mib: int) -> mmap.mmap:
    """Return private memory that is bound to a node, as a backend of QEMU's is; raises OSError."""
    memory = mmap.mmap(-1, size_mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    size, mask = ctypes.c_ulong(len(memory)), ctypes.c_ulong(1 << node)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_MBIND, address, size, _BIND, ctypes.byref(mask), ctypes.c_ulong(64), 0):
        raise OSError(ctypes.get_errno(), "mbind")
    return memory


def main() -> None:
    """Be the guest."""
    _option, _consumer, node, size_mib, text = sys.argv[1:]
    memory, data = bound_memory(int(node), int(size_mib)), text.encode()
    seen = bytes(memory[: len(data)])
    memory[: len(data)] = data
    print(f"found {seen.hex()}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
