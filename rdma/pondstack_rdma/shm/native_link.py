"""A borrower's link that carries out usual accesses in rdma/native/shm_access.c, and all others as ShmLink does."""

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from pondstack_rdma.base import partial_batch
from pondstack_rdma.bounds import check_operations
from pondstack_rdma.model import Characteristics, Key, Operation, Read, ReadableBuffer, Ticket, WritableBuffer, Write
from pondstack_rdma.shm.link import ShmLink
from pondstack_rdma.shm.window import Window


class ShmAccess(Protocol):
    """Accesses to the windows of one link, found by the identity of their keys. An unusual access is left to Python."""

    def add(self, key: Key, region: memoryview, control: memoryview, slot: int, key_number: int) -> bool:
        """Add a window, and hold its buffers until `remove`; False if the table has no room."""

    def remove(self, key: Key) -> None:
        """Remove a window; idempotent."""

    def read(self, key: Key, offset: int, into: WritableBuffer) -> bool:
        """Read; False if nothing was read, or the key was revoked meanwhile."""

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> bool:
        """Write; False as with `read`."""

    def batch(self, operations: Sequence[Operation]) -> int:
        """Carry out operations. Return how many are complete, or -1 if none was begun."""


class ShmAccessType(Protocol):
    """The compiled type."""

    def __call__(self, fd: int, read_type: type[Read], write_type: type[Write]) -> ShmAccess:
        """Return an accessor for the link with this socket."""


def native() -> ShmAccessType | None:
    """Return the compiled type; None where it was not built."""
    try:
        made: ShmAccessType = importlib.import_module("pondstack_rdma._native").ShmAccess
    except ImportError:
        return None
    return made


class NativeShmLink(ShmLink):
    """Unlike its base class, it polls the lender's socket at most once a millisecond, not before each access."""

    def __init__(
        self, ticket: Ticket, characteristics: Characteristics, timeout_seconds: float, access_type: ShmAccessType
    ) -> None:
        super().__init__(ticket, characteristics, timeout_seconds)
        self._native = access_type(self._socket.fileno(), Read, Write)

    def read_into(self, key: Key, offset: int, into: WritableBuffer) -> None:
        """Fill a buffer from a region."""
        if not self._native.read(key, offset, into):
            super().read_into(key, offset, into)

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> None:
        """Copy a buffer into a region."""
        if not self._native.write(key, offset, data):
            super().write(key, offset, data)

    def batch(self, operations: Sequence[Operation]) -> None:
        """Carry out operations in order; it ends at the first that fails."""
        done = self._native.batch(operations)
        if done < 0:
            super().batch(operations)
        elif done < len(operations):
            rest = operations[done:]
            more, error = self._run(rest, check_operations(rest, self.characteristics))
            if error is not None:
                raise partial_batch(done + more, len(operations), error) from error

    def _map(self, key: Key) -> Window:
        window = super()._map(key)
        window.before_unmap = partial(self._native.remove, key)
        self._native.add(key, window.view, self._control.words, window.slot, key.number)
        return window
