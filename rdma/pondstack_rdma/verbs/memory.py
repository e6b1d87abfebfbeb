"""Memory that a device may reach: anonymous pages, all there, and pinned while a key of them lives."""

import ctypes
import mmap
from typing import Any

from pondstack_rdma.errors import RegistrationFailed
from pondstack_rdma.host_memory import Room, check_room, host_room
from pondstack_rdma.secret_memory import keep_from_dumps
from pondstack_rdma.verbs import pyverbs_binding
from pondstack_rdma.verbs.pyverbs_binding import Access

_POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE, of Linux 5.14: an error where touching pages would be a signal."""
_STEP_BYTES = 64 * 2**20
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MAP_LOCKED = 0x2000


class PinnedMemory:
    """Zeros at first; locked where RLIMIT_MEMLOCK and privileges allow it. Child processes do not inherit it."""

    def __init__(self, size_bytes: int, room: Room = host_room) -> None:
        check_room(size_bytes, *room())
        try:
            self._mapping, self._locked = _map(size_bytes)
            self._mapping.madvise(mmap.MADV_DONTFORK)
            keep_from_dumps(self._mapping)
            for offset in range(0, size_bytes, _STEP_BYTES):
                step = min(_STEP_BYTES, size_bytes - offset)
                check_room(step, *room())  # others take memory meanwhile
                self._mapping.madvise(_POPULATE_WRITE, offset, step)
        except OSError as error:
            raise RegistrationFailed(
                f"this host gives no {size_bytes} bytes of memory ({error}); look at free memory and at the limit of "
                "the agent's cgroup"
            ) from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        self.view = memoryview(self._mapping)

    @property
    def locked(self) -> bool:
        """Whether the kernel keeps it in RAM, also while no key of it lives."""
        return self._locked

    def register(self, domain: Any, access: Access) -> Any:
        """Let whoever is connected within a protection domain reach it; raises RegistrationFailed."""
        verbs = pyverbs_binding.load()
        size = self.view.nbytes
        try:
            return verbs.MR(domain, size, access, address=self.address)
        except verbs.Error as error:
            raise RegistrationFailed(
                f"the RDMA device does not register {size} bytes: {error}; see `ulimit -l` and `rdma resource`"
            ) from error

    def close(self) -> None:
        """Unmap; of memory that is not registered any more. Idempotent."""
        self.view.release()
        self._mapping.close()


def _map(size_bytes: int) -> tuple[mmap.mmap, bool]:
    try:
        return mmap.mmap(-1, size_bytes, flags=_FLAGS | _MAP_LOCKED), True
    except (PermissionError, BlockingIOError):  # EAGAIN: more than may be locked
        return mmap.mmap(-1, size_bytes, flags=_FLAGS), False
