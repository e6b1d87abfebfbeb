"""One lender as a borrower has it: its keys by buffer, a link that may be down, and when it is tried again."""

import threading
from collections.abc import Callable, Iterable, Mapping

from pondstack.domain.errors import NotFound, PondError
from pondstack_rdma.base import Link, Transport
from pondstack_rdma.errors import AccessRefused, PartialBatch, TransportGone, TransportTimeout
from pondstack_rdma.model import Key, Operation, Read, ReadableBuffer, Ticket, WritableBuffer, Write

_FIRST_SECONDS = 0.5


def backoff_seconds(failures: int, longest_seconds: float) -> float:
    """Return how long to wait after so many failures in a row: doubled each time, up to a bound. Pure."""
    return 0.0 if failures == 0 else min(_FIRST_SECONDS * 2 ** min(failures - 1, 30), longest_seconds)


class LenderLink:
    """Reads and writes buffers of one incarnation of a lender. `clock`: seconds, monotonic.

    An access of a link that is down raises TransportGone at once: the caller goes on from its mirror.
    """

    def __init__(
        self,
        lender: str,
        incarnation: str,
        ticket: Ticket,
        transport: Transport,
        timeout_seconds: float,
        longest_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self.lender, self.incarnation = lender, incarnation
        self._ticket, self._transport = ticket, transport
        self._timeout, self._longest, self._clock = timeout_seconds, longest_seconds, clock
        self._lock = threading.Lock()
        self._keys: dict[int, Key] = {}
        self._link: Link | None = None
        self._failures = 0
        self._again = clock()

    @property
    def up(self) -> bool:
        """Whether it was not seen to fail."""
        return self._link is not None

    @property
    def fresh(self) -> bool:
        """Whether it was not tried yet, or worked when it was tried last."""
        return self._failures == 0

    @property
    def due(self) -> bool:
        """Whether it is down and should be tried again."""
        return self._link is None and self._clock() >= self._again

    def open(self, keys: Mapping[int, Key]) -> None:
        """Connect where need be and open keys; those that fail are not kept. Raises AccessRefused, TransportGone."""
        with self._lock:
            link = self._connected()
            try:
                for key in keys.values():
                    link.open(key)
            except PondError as error:
                self._failed(link, error)
                raise
            self._keys.update(keys)

    def reopen(self, keys: Mapping[int, Key]) -> list[int]:
        """Connect and open keys after a break; returns those that the lender refuses.

        Raises TransportGone, and WrongBorrower when another process is the lender now.
        """
        with self._lock:
            self._connected()
        refused = []
        for index, key in keys.items():
            try:
                self.open({index: key})
            except TransportGone:
                raise
            except PondError:
                refused.append(index)
        return refused

    def key(self, index: int) -> Key:
        """Return the key of a buffer; raises NotFound when it was given back."""
        try:
            return self._keys[index]
        except KeyError:
            raise NotFound(f"buffer {index} of lender {self.lender} is not borrowed; it was given back") from None

    def read_into(self, index: int, offset: int, into: WritableBuffer) -> None:
        """Fill a buffer of ours; raises AccessRefused, TransportGone, NotFound."""
        self._one(Read(self.key(index), offset, into))

    def write(self, index: int, offset: int, data: ReadableBuffer) -> None:
        """Copy a buffer of ours; raises AccessRefused, TransportGone, NotFound."""
        self._one(Write(self.key(index), offset, data))

    def batch(self, operations: list[Operation]) -> None:
        """Carry out operations with keys of `key`, in order; raises PartialBatch, TransportGone."""
        link = self._up()
        try:
            link.batch(operations)
        except PondError as error:
            self._failed(link, error)
            raise

    def forget(self, indexes: Iterable[int]) -> None:
        """Give back what the link holds for buffers; asks nobody."""
        for index in indexes:
            key = self._keys.pop(index, None)
            link = self._link
            if key is not None and link is not None:
                link.forget(key)

    def check(self) -> bool:
        """Look whether the link works; False when it is down."""
        link = self._link
        if link is not None:
            try:
                link.flush()
            except PondError as error:
                self._failed(link, error)
        return self.up

    def close(self) -> None:
        """Hang up; it may be opened again."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _one(self, operation: Operation) -> None:
        link = self._up()
        try:
            if isinstance(operation, Read):
                link.read_into(operation.key, operation.offset, operation.into)
            else:
                link.write(operation.key, operation.offset, operation.data)
        except PondError as error:
            self._failed(link, error)
            raise

    def _up(self) -> Link:
        link = self._link
        if link is None:
            raise TransportGone(f"the link to lender {self.lender} is down; go on from the mirror")
        return link

    def _connected(self) -> Link:
        if self._link is None:
            try:
                self._link = self._transport.connect(self._ticket, self._timeout)
            except PondError as error:
                self._failed(None, error)
                raise
            self._failures = 0
        return self._link

    def _failed(self, link: Link | None, error: PondError) -> None:
        """Take the link down when the error says so; the first of several threads that meet it does."""
        reason = error.reason if isinstance(error, PartialBatch) else error
        refused = link is not None and link.characteristics.refusal_ends_link and isinstance(reason, AccessRefused)
        # A time-out alone ends no link: what a frozen lender's borrowers had opened may serve on.
        gone = isinstance(reason, TransportGone) and not isinstance(reason, TransportTimeout)
        if not (gone or refused or link is None) or self._link is not link:
            return
        self._link = None
        self._failures += 1
        self._again = self._clock() + backoff_seconds(self._failures, self._longest)
        if link is not None:
            link.close()
