"""A borrower over verbs. Once a key is open, the lender's device serves its accesses, and no process does."""

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
from pondstack_rdma.verbs.key_channel import KeyChannel
from pondstack_rdma.verbs.requester import LEFT_TO_PYTHON, Request, Requester
from pondstack_rdma.verbs.status import REFUSALS, failure


class RemoteRegion(NamedTuple):
    """The address and the rkey under which the lender's device serves the region of a key."""

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
        # Held while the device works for this link, and while it is closed. A Gate beside it would cost as much again.
        self._busy = threading.Lock()
        self._ended: PondError | None = None
        self._closing = self._closed = False
        self._regions: dict[Key, RemoteRegion] = {}
        self._keys: dict[Key, Key] = {}  # the objects that the compiled requester knows by identity
        self._refused: dict[Key, PondError] = {}
        with ExitStack() as stack:
            self._connect(ticket, stack)
            self._resources = stack.pop_all()

    def open(self, key: Key) -> None:
        """Request address and rkey of the key's region from the lender."""
        self._check_alive(key)
        self._region(key)

    def forget(self, key: Key) -> None:
        """Forget address and rkey of the key's region."""
        self._regions.pop(key, None)
        known = self._keys.pop(key, None)
        if known is not None:
            self._native.remove(known)

    def read_into(self, key: Key, offset: int, into: WritableBuffer) -> None:
        """Fill a buffer from a region."""
        with self._busy:
            status = self._native.read(key, offset, into)
            if not status:
                return
            if status != LEFT_TO_PYTHON:
                raise _copy_of(self._failed(key, status))
        super().read_into(key, offset, into)

    def write(self, key: Key, offset: int, data: ReadableBuffer) -> None:
        """Copy a buffer into a region."""
        with self._busy:
            status = self._native.write(key, offset, data)
            if not status:
                return
            if status != LEFT_TO_PYTHON:
                raise _copy_of(self._failed(key, status))
        super().write(key, offset, data)

    def batch(self, operations: Sequence[Operation]) -> None:
        """Carry out operations in order; it ends at the first that fails."""
        with self._busy:
            done, status = self._native.batch(operations)
            if not status:
                return
            if status != LEFT_TO_PYTHON:
                error = _copy_of(self._failed(operations[done].key, status))
                raise partial_batch(done, len(operations), error) from error
        super().batch(operations)

    def flush(self) -> None:
        """Read a byte of the flush page. A connection is ordered: earlier writes have arrived when the read returns."""
        with self._busy:
            self._check_alive(None)
            _, status = self._requester.carry_out((self._flush_read,), time.monotonic() + self._seconds)
            if status:
                self._ended = self._failure(status)
                raise _copy_of(self._ended)

    def close(self) -> None:
        """Disconnect, and close the device."""
        self._closing = True
        self._key_channel.hang_up()  # wakes a thread that waits for an answer or for the device
        with self._busy:
            if self._closed:
                return
            self._closed = True
            self._ended = TransportGone(f"{self._name} is closed")
            self._refused.clear()
            self._resources.close()

    def _connect(self, ticket: Ticket, resources: ExitStack) -> None:
        """Connect. `resources` gets what closes everything that is opened here."""
        limits, seconds = self.characteristics, self._seconds
        connection = resources.enter_context(closing(Connection(ticket.address, seconds)))
        host = ticket.address.rpartition(":")[0]
        self._key_channel = KeyChannel(host, seconds)
        resources.callback(self._key_channel.close)
        self._requester = Requester(
            connection.device,
            connection.fileno(),
            self._key_channel.fileno(),
            limits.max_batch,
            limits.max_batch_bytes,
            seconds,
        )
        resources.callback(self._requester.close)
        self._native = self._requester.native
        try:
            welcome = Welcome.unpack(connection.request(self._native.qpn, handshake.request(ticket)))
        except ValueError as error:
            raise TransportGone(f"{self._name} is broken: the lender talks nonsense ({error})") from error
        attrs = connection.attrs()
        self._requester.connect(attrs, seconds)
        connection.establish()
        self._key_channel.connect(welcome.control_port)
        self._key_channel.request({"ticket": ticket.to_dict(), "pair": attrs.dest_qpn})
        self._flush_read = Request(True, welcome.address, welcome.rkey, memoryview(bytearray(1)))

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
        address, rkey, size = self._regions.get(key) or self._region(key)
        check_bounds(offset, local.nbytes, size)
        return Request(isinstance(operation, Read), address + offset, rkey, local)

    def _carry_out(self, operations: Sequence[Operation], requests: Sequence[Request]) -> tuple[int, PondError | None]:
        self._check_alive(operations[0].key)
        ends = time.monotonic() + self._seconds
        done, status = self._requester.carry_out(requests, ends)
        return done, _copy_of(self._failed(operations[done].key, status, ends)) if status else None

    def _failed(self, key: Key, status: int, ends: float = 0.0) -> PondError:
        """End the link after an access that failed, and return the error."""
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
        """Ask the lender's process why its device refused. It may not know."""
        try:
            self._key_channel.request({"key": key.to_dict()}, ends)
        except AccessRefused as refusal:
            return refusal
        except TransportGone:
            return AccessRefused(f"{self._name}: the lender's device refuses key {key.number}")
        return AccessRefused(
            f"{self._name}: the lender's device refuses this access with key {key.number}, which lives"
        )

    def _check_alive(self, key: Key | None) -> None:
        if self._ended is not None:
            raise _copy_of(self._refused.get(key, self._ended) if key else self._ended)

    def _region(self, key: Key) -> RemoteRegion:
        if key in self._regions:
            return self._regions[key]
        self._check_alive(key)
        answer = self._key_channel.request({"key": key.to_dict()})
        try:
            region = RemoteRegion(int(answer["address"]), int(answer["rkey"]), key.size_bytes)
        except (KeyError, TypeError, ValueError) as error:
            raise TransportGone(f"{self._name} is broken: the lender talks nonsense ({error!r})") from error
        self._regions[key] = region
        known = self._keys.setdefault(key, key)
        self._native.add(known, *region)
        return region


def _copy_of(error: PondError) -> PondError:
    """Return a copy of an error, because other threads may be raising the original."""
    return type(error)(error.message)
