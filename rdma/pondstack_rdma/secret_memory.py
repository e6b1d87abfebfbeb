"""Memory for keys: locked in RAM, in no core dump, and zeros in a child process."""

import ctypes
import logging
import mmap
import os

LOG = logging.getLogger(__name__)

_WIPE_ON_FORK = 18  # MADV_WIPEONFORK, of Linux 4.14
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def random_secret(size_bytes: int) -> memoryview:
    """Return random bytes of the kernel that were never anywhere else in this process.

    They are there while the view is. What cannot be locked is told in the log: RLIMIT_MEMLOCK leaves no page.
    """
    mapping = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping.madvise(mmap.MADV_DONTDUMP)
    mapping.madvise(_WIPE_ON_FORK)
    if _LIBC.mlock(ctypes.addressof(ctypes.c_char.from_buffer(mapping)), len(mapping)):
        LOG.warning(
            "A key cannot be locked in RAM (%s) and may reach swap; raise LimitMEMLOCK of the service, see `ulimit -l`",
            os.strerror(ctypes.get_errno()),
        )
    view = memoryview(mapping)
    with open("/dev/urandom", "rb", buffering=0) as source:
        if source.readinto(view) != size_bytes:
            raise OSError("the kernel gave too few random bytes")
    return view


def keep_from_dumps(mapping: mmap.mmap) -> None:
    """Leave a mapping with somebody's pages out of core dumps of this process; raises OSError."""
    mapping.madvise(mmap.MADV_DONTDUMP)
