"""Memory of a region that other processes of the machine can map: a sealed memfd.

The seals keep its size, so that no side can make the other's access fault, and keep anybody from adding seals, which
could forbid the lender to take the pages back.
"""

import ctypes
import errno
import fcntl
import mmap
import os

from pondstack_rdma.errors import RegistrationFailed
from pondstack_rdma.host_memory import Room, check_room, host_room
from pondstack_rdma.secret_memory import keep_from_dumps

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_MAP_LOCKED = 0x2000
_STEP_BYTES = 64 * 2**20
_PUNCH_HOLE = 0x01 | 0x02  # with FALLOC_FL_KEEP_SIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class SharedMemory:
    """A memfd with all its pages there, locked where RLIMIT_MEMLOCK and privileges allow it."""

    def __init__(self, size_bytes: int, room: Room = host_room) -> None:
        self._size = size_bytes
        self.fd = -1
        try:
            check_room(size_bytes, *room())
            self.fd = os.memfd_create("pondstack-lent", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.fd, size_bytes)
            # Not by touching a mapping: memory that is not there shall be an error here, not a signal.
            for offset in range(0, size_bytes, _STEP_BYTES):
                step = min(_STEP_BYTES, size_bytes - offset)
                check_room(step, *room())  # others take memory meanwhile
                os.posix_fallocate(self.fd, offset, step)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, SEALS)
            self._mapping, self._locked = _map(self.fd, size_bytes)
            keep_from_dumps(self._mapping)
        except BaseException as error:
            if self.fd >= 0:
                os.close(self.fd)
            if not isinstance(error, OSError):
                raise
            raise RegistrationFailed(
                f"this host gives no {size_bytes} bytes of shared memory ({error}); look at free memory, at the limit "
                "of the agent's cgroup, and at `ulimit -n`, as every region needs two descriptors"
            ) from error
        self._view = memoryview(self._mapping)

    @property
    def view(self) -> memoryview:
        """All of it, writable."""
        return self._view

    @property
    def locked(self) -> bool:
        """Whether the kernel keeps it in RAM."""
        return self._locked

    def close(self) -> None:
        """Give the pages back to the host now, also while a borrower still maps them; idempotent."""
        if self.fd < 0:
            return
        fd, self.fd = self.fd, -1
        self._view.release()
        self._mapping.close()
        try:
            while _LIBC.fallocate(fd, _PUNCH_HOLE, 0, self._size):
                if ctypes.get_errno() != errno.EINTR:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(fd)


def _map(fd: int, size_bytes: int) -> tuple[mmap.mmap, bool]:
    try:
        return mmap.mmap(fd, size_bytes, flags=mmap.MAP_SHARED | _MAP_LOCKED), True
    except (PermissionError, BlockingIOError):  # EAGAIN: more than may be locked
        return mmap.mmap(fd, size_bytes, flags=mmap.MAP_SHARED), False
