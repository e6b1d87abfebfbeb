"""The transport interface: a lender gives out keys of its memory, a borrower's link reads and writes with them.

Every driver passes rdma/tests/test_contract_*.py, as far as its characteristics go. All of it may be used from several
threads at once, and every `close` may be repeated.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pondstack.domain.errors import PondError
from pondstack_rdma.bounds import check_bounds, check_operations
from pondstack_rdma.errors import PartialBatch
from pondstack_rdma.model import (
    Characteristics,
    Key,
    Operation,
    Read,
    ReadableBuffer,
    Region,
    Ticket,
    WritableBuffer,
    Write,
)


class _Closing:
    def close(self) -> None:
        """Give everything back; idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Lender(_Closing, ABC):
    """Lender side, in one process. After `close` every other method raises TransportGone."""

    @abstractmethod
    def admit(self, borrower: str) -> Ticket:
        """Return what `borrower` connects with; the same one each time."""

    @abstractmethod
    def register(self, size_bytes: int) -> Region:
        """Take memory of this host for lending: pre-faulted, and locked where the kernel allows it.

        Raises BadRequest unless `size_bytes` is whole pages, RegistrationFailed when there is no memory for it.
        """

    @abstractmethod
    def export(self, region: Region, borrower: str) -> Key:
        """Return a new key with which `borrower` reaches all of a region.

        While no key of a region lives it has no content: whoever gets the next one finds zeros. Several keys share
        the content, as for rotation, or when a VM moves from one borrower to another. Raises NotFound,
        RegistrationFailed.
        """

    def locate(self, key: Key) -> Key:
        """Return a live key with the location of its region: whoever is connected needs no answer of this host.

        While it lives the location holds. The key as it is where the driver has none. Raises as an access does.
        """
        return key

    @abstractmethod
    def revoke(self, key: Key) -> bool:
        """End a key; False when it did not live. Other keys are not disturbed (US_reclaim, Zombieland 4.3).

        With the last key of a region its bytes are gone, and its memory is the host's again until the next export.
        Raises RevokeFailed when the device did not end it: the key opens nothing new, and whoever had opened it may go
        on. Until a repetition succeeds its region keeps its content, and cannot be exported or given back.
        """

    @abstractmethod
    def dismiss(self, borrower: str) -> bool:
        """Hang up on a borrower, end all its keys and its ticket, and keep nothing of it; False when nobody knew it.

        Of the same name, `admit` makes another one. Raises RevokeFailed, as `revoke` does.
        """

    @abstractmethod
    def deregister(self, region: Region) -> bool:
        """Give a region back to the host; False when it was not there. Raises InUse while one of its keys lives."""

    @abstractmethod
    def load(self, region: Region, offset: int, size: int) -> bytes:
        """Read a region at the lender itself; raises NotFound, OutOfBounds."""

    @abstractmethod
    def store(self, region: Region, offset: int, data: ReadableBuffer) -> None:
        """Write a region at the lender itself; raises NotFound, OutOfBounds."""

    def watch(self, region: Region, offset: int, known: bytes, pause_seconds: float, looks: int) -> bool:
        """Wait until bytes of a region at the lender itself are not what is known: whether they are not.

        Looks so often at most, with pauses of a second at most in between. Raises NotFound, OutOfBounds.
        """
        for _ in range(looks):
            if self.load(region, offset, len(known)) != known:
                return True
            time.sleep(pause_seconds)
        return self.load(region, offset, len(known)) != known


class Link(_Closing, ABC):
    """Borrower side: a connection to one lender. Every call returns, or raises, within the link's time-out.

    Accesses raise AccessRefused, and TransportGone when the lender is gone; after that, close the link.
    """

    characteristics: Characteristics

    @abstractmethod
    def open(self, key: Key) -> None:
        """Make a key ready; the first access does it, too. Some drivers need the lender's CPU for it: open all keys of
        a lender before it freezes. Raises AccessRefused, TransportGone."""

    @abstractmethod
    def forget(self, key: Key) -> None:
        """Give back what the link holds for a key; idempotent, and asks nobody."""

    def read(self, key: Key, offset: int, size: int) -> bytes:
        """Return `size` bytes of a region."""
        check_bounds(offset, size, key.size_bytes)  # before memory is taken for what is asked
        into = bytearray(size)
        self.read_into(key, offset, into)
        return bytes(into)

    def read_into(self, key: Key, offset: int, into: WritableBuffer) -> None:
        """Fill a buffer from a region, without a copy in between where the driver can."""
        self._one(Read(key, offset, into))

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> None:
        """Copy a buffer into a region."""
        self._one(Write(key, offset, data))

    def batch(self, operations: Sequence[Operation]) -> None:
        """Carry out operations in order; it ends at the first that fails.

        Raises BadRequest or OutOfBounds, with nothing done, for what no driver or not this one can take; otherwise
        PartialBatch.
        """
        done, error = self._run(operations, check_operations(operations, self.characteristics))
        if error is not None:
            raise partial_batch(done, len(operations), error) from error

    @abstractmethod
    def flush(self) -> None:
        """Return once all that was written is in the lender's memory, for every reader; raises TransportGone."""

    def _one(self, operation: Operation) -> None:
        _, error = self._run((operation,), check_operations((operation,), self.characteristics))
        if error is not None:
            raise error

    @abstractmethod
    def _run(self, operations: Sequence[Operation], local: Sequence[memoryview]) -> tuple[int, PondError | None]:
        """Carry out operations in order: how many are complete, and why the next one is not.

        `local` are their buffers, as plain bytes and writable where need be.
        """


def partial_batch(done: int, count: int, error: PondError) -> PartialBatch:
    """Return the error of a batch of `count` operations that ended early."""
    return PartialBatch(f"{done} of {count} operations were carried out; then: {error.message}", done, error)


class Transport(ABC):
    """A kind of transport. Drivers register under the entry point group `pondstack.transports`."""

    characteristics: Characteristics

    @abstractmethod
    def lend(self, name: str) -> Lender:
        """Start a lender called `name` in this process.

        Raises InUse when there is one, RegistrationFailed, NoDevice.
        """

    @abstractmethod
    def connect(self, ticket: Ticket, timeout_seconds: float) -> Link:
        """Connect a borrower; raises WrongBorrower, TransportGone, NoDevice."""
