"""A process that pins a page of a node, so that its memory cannot go offline: vmsplice into a pipe that nobody reads.

Argument: NODE. Says "pinned", and lets go when its input ends.
"""

import ctypes
import mmap
import os
import sys

from tests.hardware.guest.tenant import bound_memory


class Iovec(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def main() -> None:
    """Pin one page."""
    memory = bound_memory(int(sys.argv[1]), 1)
    memory[:5] = b"taken"
    page = (ctypes.c_char * mmap.PAGESIZE).from_buffer(memory)
    _reader, writer = os.pipe()
    libc = ctypes.CDLL(None, use_errno=True)
    part = Iovec(ctypes.addressof(page), mmap.PAGESIZE)
    if libc.vmsplice(writer, ctypes.byref(part), 1, 0) != mmap.PAGESIZE:
        raise OSError(ctypes.get_errno(), "vmsplice")
    print("pinned", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
