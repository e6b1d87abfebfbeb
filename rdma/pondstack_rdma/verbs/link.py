"""Borrower over verbs: after a key is open, an access is a request to the lender's device, which no process serves."""

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from pondstack.domain.errors import PondError
from pondstack_rdma.base import Link, partial_batch
from pondstack_rdma.bounds import check_bounds
from pondstack_rdma.errors import AccessRefused, TransportGone
from pondstack_rdma.model import Characteristics, Key, Operation, Read, ReadableBuffer, Ticket, WritableBuffer
from pondstack_rdma.verbs import handshake
from pondstack_rdma.verbs.connection import Connection
from pondstack_rdma.verbs.handshake import Welcome
from pondstack_rdma.verbs.key_channel import Control
from pondstack_rdma.verbs.requester import LEFT_TO_PYTHON, Request, Requester
from pondstack_rdma.verbs.status import REFUSALS, failure


class RemoteRegion(NamedTuple):
    """Where the lender's device has the region of a key."""

    address: int
    rkey: int
    size_bytes: int


class VerbsLink(Link):
    """Connects in its constructor; raises WrongBorrower, TransportGone, NoDevice, RegistrationFailed.

    A device that refuses an access, or does not answer, ends the link.
    """

    def __init__(self, ticket: Ticket, characteristics: Characteristics, timeout_seconds: float) -> None:
        self.characteristics = characteristics
        self._name = f"the link to {ticket.address}"
        self._seconds = timeout_seconds
        # Held while the device works for this link, and to give it back: no gate beside it, which costs as much again.
        self._busy = threading.Lock()
        self._ended: PondError | None = None
        self._closing = self._closed = False
        self._windows: dict[Key, RemoteRegion] = {}
        self._keys: dict[Key, Key] = {}  # as the compiled part knows them: by identity
        self._refused: dict[Key, PondError] = {}
        with ExitStack() as stack:
            self._connect(ticket, stack)
            self._parts = stack.pop_all()

    def open(self, key: Key) -> None:
        """Ask the lender where the region of a key is."""
        self._check_alive(key)
        self._window(key)

    def forget(self, key: Key) -> None:
        """Forget where the region is."""
        self._windows.pop(key, None)
        known = self._keys.pop(key, None)
        if known is not None:
            self._line.remove(known)

    def read_into(self, key: Key, offset: int, into: WritableBuffer) -> None:
        """Fill a buffer from a region."""
        with self._busy:
            status = self._line.read(key, offset, into)
            if not status:
                return
            if status != LEFT_TO_PYTHON:
                raise _again(self._failed(key, status))
        super().read_into(key, offset, into)

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> None:
        """Copy a buffer into a region."""
        with self._busy:
            status = self._line.write(key, offset, data)
            if not status:
                return
            if status != LEFT_TO_PYTHON:
                raise _again(self._failed(key, status))
        super().write(key, offset, data)

    def batch(self, operations: Sequence[Operation]) -> None:
        """Carry out operations in order; it ends at the first that fails."""
        with self._busy:
            done, status = self._line.batch(operations)
            if not status:
                return
            if status != LEFT_TO_PYTHON:
                error = _again(self._failed(operations[done].key, status))
                raise partial_batch(done, len(operations), error) from error
        super().batch(operations)

    def flush(self) -> None:
        """Read a byte of the lender: what was written before it has arrived then, says the order of a connection."""
        with self._busy:
            self._check_alive(None)
            _, status = self._requester.carry_out((self._beacon,), time.monotonic() + self._seconds)
            if status:
                self._ended = self._failure(status)
                raise _again(self._ended)

    def close(self) -> None:
        """Hang up, and give the device back."""
        self._closing = True
        self._control.hang_up()  # wakes who waits for an answer, or for the device
        with self._busy:
            if self._closed:
                return
            self._closed = True
            self._ended = TransportGone(f"{self._name} is closed")
            self._refused.clear()
            self._parts.close()

    def _connect(self, ticket: Ticket, parts: ExitStack) -> None:
        """Connect; in `parts` is how all that it takes is given back."""
        limits, seconds = self.characteristics, self._seconds
        connection = parts.enter_context(closing(Connection(ticket.address, seconds)))
        host = ticket.address.rpartition(":")[0]
        self._control = Control(host, seconds)
        parts.callback(self._control.close)
        self._requester = Requester(
            connection.device,
            connection.fileno(),
            self._control.fileno(),
            limits.max_batch,
            limits.max_batch_bytes,
            seconds,
        )
        parts.callback(self._requester.close)
        self._line = self._requester.line
        try:
            welcome = Welcome.unpack(connection.ask(self._line.number, handshake.request(ticket)))
        except ValueError as error:
            raise TransportGone(f"{self._name} is broken: the lender talks nonsense ({error})") from error
        path = connection.path()
        self._requester.connect(path, seconds)
        connection.establish()
        self._control.connect(welcome.control_port)
        self._control.ask({"ticket": ticket.to_dict(), "pair": path.number})
        self._beacon = Request(True, welcome.address, welcome.rkey, memoryview(bytearray(1)))

    def _run(self, operations: Sequence[Operation], local: Sequence[memoryview]) -> tuple[int, PondError | None]:
        error: PondError | None = None
        requests: list[Request] = []
        try:
            try:
                for operation, buffer in zip(operations, local, strict=True):
                    requests.append(self._request(operation, buffer))
            except AccessRefused as refusal:
                error = refusal
            if not requests:
                return 0, error
            with self._busy:
                done, failed = self._carry_out(operations, requests)
        except PondError as ended:
            return 0, ended
        return done, failed or error

    def _request(self, operation: Operation, local: memoryview) -> Request:
        key, offset = operation.key, operation.offset
        address, rkey, size = self._windows.get(key) or self._window(key)
        check_bounds(offset, local.nbytes, size)
        return Request(isinstance(operation, Read), address + offset, rkey, local)

    def _carry_out(self, operations: Sequence[Operation], requests: Sequence[Request]) -> tuple[int, PondError | None]:
        self._check_alive(operations[0].key)
        ends = time.monotonic() + self._seconds
        done, status = self._requester.carry_out(requests, ends)
        return done, _again(self._failed(operations[done].key, status, ends)) if status else None

    def _failed(self, key: Key, status: int, ends: float = 0.0) -> PondError:
        """End the link for an access that failed: with what."""
        if status not in REFUSALS:
            self._ended = self._failure(status)
            return self._ended
        self._refused[key] = self._why(key, ends or time.monotonic() + self._seconds)
        self._ended = TransportGone(f"{self._name} was ended by a refusal; connect again")
        return self._refused[key]

    def _failure(self, status: int) -> PondError:
        if self._closing:
            return TransportGone(f"{self._name} is closed")
        return failure(self._name, status, self._seconds)

    def _why(self, key: Key, ends: float) -> PondError:
        """Ask the lender's process why its device refused; it may not be able to tell."""
        try:
            self._control.ask({"key": key.to_dict()}, ends)
        except AccessRefused as refusal:
            return refusal
        except TransportGone:
            return AccessRefused(f"{self._name}: the lender's device refuses key {key.number}")
        return AccessRefused(
            f"{self._name}: the lender's device refuses this access with key {key.number}, which lives"
        )

    def _check_alive(self, key: Key | None) -> None:
        if self._ended is not None:
            raise _again(self._refused.get(key, self._ended) if key else self._ended)

    def _window(self, key: Key) -> RemoteRegion:
        if key in self._windows:
            return self._windows[key]
        self._check_alive(key)
        answer = self._control.ask({"key": key.to_dict()})
        try:
            window = RemoteRegion(int(answer["address"]), int(answer["rkey"]), key.size_bytes)
        except (KeyError, TypeError, ValueError) as error:
            raise TransportGone(f"{self._name} is broken: the lender talks nonsense ({error!r})") from error
        self._windows[key] = window
        known = self._keys.setdefault(key, key)
        self._line.add(known, *window)
        return window


def _again(error: PondError) -> PondError:
    """Return an error like one that others may be raising."""
    return type(error)(error.message)
