"""Memory of a region in the lender's own process."""

import mmap

from pondstack_rdma.errors import RegistrationFailed
from pondstack_rdma.host_memory import check_room, host_room
from pondstack_rdma.secret_memory import keep_from_dumps


class PrivateMemory:
    """Anonymous pages, neither locked nor pre-faulted: the driver is for debugging."""

    locked = False

    def __init__(self, size_bytes: int) -> None:
        check_room(size_bytes, *host_room())
        try:
            self._mapping = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            keep_from_dumps(self._mapping)
        except OSError as error:
            raise RegistrationFailed(f"this host gives no {size_bytes} bytes of memory ({error})") from error
        self.view = memoryview(self._mapping)

    def close(self) -> None:
        """Unmap; idempotent."""
        self.view.release()
        self._mapping.close()
