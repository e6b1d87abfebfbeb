"""A process whose memory a test places, leaves alone and uses again.

Arguments: MIB [POLICY NODE...], the policy `bind` or `weighted`. For each line of its input, SECONDS MIB, it reads a
byte of each page of the first so many MiB over and over, and answers with a line. It ends with its input.

An emulated CPU's TLB may hold all of these pages, where a real one holds a few MiB of them, and the kernel's accessed
bit is not set again for what the TLB holds. So each round ends with a flush of it.
"""

import ctypes
import mmap
import sys
import time

PAGE = 4096
_POLICIES = {"bind": 2, "weighted": 6}  # linux/mempolicy.h
_SET_MEMPOLICY = 238  # asm/unistd_64.h
_FLUSHED = 64
"""Pages unmapped at once for which Linux flushes the whole TLB (tlb_single_page_flush_ceiling is 33)."""


def policy(name: str, nodes: list[int]) -> None:
    """Set the memory policy of this process; raises OSError."""
    mask = ctypes.c_ulong(sum(1 << node for node in nodes))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SET_MEMPOLICY, _POLICIES[name], ctypes.byref(mask), ctypes.c_ulong(64)):
        raise OSError(ctypes.get_errno(), "set_mempolicy")


def flush() -> None:
    """Empty the TLB of the CPU that this process is on."""
    with mmap.mmap(-1, _FLUSHED * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as unmapped:
        for start in range(0, len(unmapped), PAGE):
            unmapped[start] = 0


def main() -> None:
    """Fill the memory, page by page, then do what the input says."""
    size = int(sys.argv[1]) << 20
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    if len(sys.argv) > 2:
        policy(sys.argv[2], [int(word) for word in sys.argv[3:]])
    for start in range(0, size, PAGE):
        memory[start] = 0xA5
    print("filled", flush=True)
    for number, line in enumerate(sys.stdin, 1):
        seconds, mib = line.split()
        end, rounds = time.monotonic() + float(seconds), 0
        while time.monotonic() < end:
            if memory[: int(mib) << 20 : PAGE].strip(b"\xa5"):
                sys.exit("a page has changed")
            flush()
            rounds += 1
        print(f"touched {number} times, {rounds} rounds", flush=True)


if __name__ == "__main__":
    main()
