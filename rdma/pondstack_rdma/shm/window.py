"""A borrower's window on one region: the mapping, and the word that says whether the key lives."""

import mmap
from collections.abc import Callable

from pondstack_rdma.bounds import check_bounds
from pondstack_rdma.errors import KeyRevoked, TransportGone
from pondstack_rdma.gate import Gate
from pondstack_rdma.model import Key, Operation, Read
from pondstack_rdma.secret_memory import keep_from_dumps
from pondstack_rdma.shm.control import ControlView


class Window:
    """Takes no ownership of the descriptor, nor of the control page."""

    def __init__(self, key: Key, fd: int, slot: int, control: ControlView) -> None:
        self.key = key
        self.slot = slot
        self.before_unmap: Callable[[], None] = lambda: None
        """Lets go of other users of `view`."""
        self._control = control
        self._gate = Gate(f"the window of key {key.number}")
        # Page tables now, rather than a fault per page within the accesses.
        self._mapping = mmap.mmap(fd, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        keep_from_dumps(self._mapping)
        self._view = memoryview(self._mapping)

    @property
    def view(self) -> memoryview:
        """All of the region."""
        return self._view

    def carry_out(self, operation: Operation, local: memoryview) -> None:
        """Copy; raises KeyRevoked, OutOfBounds, TransportGone when the window is closed."""
        try:
            self._copy(operation, local)
        except TransportGone:
            self.check_lives()  # another thread has closed the window for that
            raise

    def close(self) -> None:
        """Unmap, once nobody copies any more; idempotent."""
        first = self._gate.shut()
        self._gate.wait_empty()
        if first:
            self.before_unmap()
            self._view.release()
            self._mapping.close()

    def _copy(self, operation: Operation, local: memoryview) -> None:
        with self._gate:
            self.check_lives()
            check_bounds(operation.offset, local.nbytes, self._view.nbytes)
            with self._view[operation.offset : operation.offset + local.nbytes] as remote:
                if isinstance(operation, Read):
                    local[:] = remote
                else:
                    remote[:] = local
            # A read must not tell what was there after the end of the key; a write that came too late went into
            # pages that nobody else ever gets, or, where another key shares the region, among that one's bytes.
            self.check_lives()

    def check_lives(self) -> None:
        """Raise KeyRevoked unless the key lives."""
        if not self._control.lives(self.slot, self.key.number):
            raise KeyRevoked(f"key {self.key.number} was revoked by its lender")
