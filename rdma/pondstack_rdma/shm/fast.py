"""A borrower's link whose usual accesses are one call of rdma/native/port.c; all others are ShmLink's."""

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from pondstack_rdma.base import partial_batch
from pondstack_rdma.bounds import check_operations
from pondstack_rdma.model import Characteristics, Key, Operation, Read, ReadableBuffer, Ticket, WritableBuffer, Write
from pondstack_rdma.shm.link import ShmLink
from pondstack_rdma.shm.window import Window


class Port(Protocol):
    """The windows of one link, known by the identity of their keys; each access is done, or left to Python."""

    def add(self, key: Key, region: memoryview, control: memoryview, slot: int, number: int) -> bool:
        """Know a window, whose buffers are held from now on; False when there is no room for it."""

    def remove(self, key: Key) -> None:
        """Forget a window."""

    def read(self, key: Key, offset: int, into: WritableBuffer) -> bool:
        """Read; False when nothing was done, or the key was revoked meanwhile."""

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> bool:
        """Write; False as with `read`."""

    def batch(self, operations: Sequence[Operation]) -> int:
        """Carry out operations: how many are complete, -1 when none was begun."""


class PortType(Protocol):
    """Makes them."""

    def __call__(self, fd: int, read_type: type[Read], write_type: type[Write]) -> Port:
        """Make one for the link with this socket."""


def native() -> PortType | None:
    """Return the compiled type; None where it was not built."""
    try:
        made: PortType = importlib.import_module("pondstack_rdma._native").Port
    except ImportError:
        return None
    return made


class FastShmLink(ShmLink):
    """Unlike its base it looks at the lender's socket once a millisecond at most, not before each access."""

    def __init__(
        self, ticket: Ticket, characteristics: Characteristics, timeout_seconds: float, port: PortType
    ) -> None:
        super().__init__(ticket, characteristics, timeout_seconds)
        self._port = port(self._socket.fileno(), Read, Write)

    def read_into(self, key: Key, offset: int, into: WritableBuffer) -> None:
        """Fill a buffer from a region."""
        if not self._port.read(key, offset, into):
            super().read_into(key, offset, into)

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> None:
        """Copy a buffer into a region."""
        if not self._port.write(key, offset, data):
            super().write(key, offset, data)

    def batch(self, operations: Sequence[Operation]) -> None:
        """Carry out operations in order; it ends at the first that fails."""
        done = self._port.batch(operations)
        if done < 0:
            super().batch(operations)
        elif done < len(operations):
            rest = operations[done:]
            more, error = self._run(rest, check_operations(rest, self.characteristics))
            if error is not None:
                raise partial_batch(done + more, len(operations), error) from error

    def _map(self, key: Key) -> Window:
        window = super()._map(key)
        window.before_unmap = partial(self._port.remove, key)
        self._port.add(key, window.view, self._control.words, window.slot, key.number)
        return window
