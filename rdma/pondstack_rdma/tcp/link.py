"""Borrower over TCP: one question at a time, each answered by the lender's process. For debugging only."""

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.base import Link
from pondstack_rdma.errors import TransportGone, TransportTimeout
from pondstack_rdma.gate import Gate
from pondstack_rdma.model import Characteristics, Key, Operation, Read, Ticket, Write
from pondstack_rdma.tcp import messages


class TcpLink(Link):
    """Connects in its constructor; raises WrongBorrower, TransportGone. A time-out ends the link."""

    def __init__(self, ticket: Ticket, characteristics: Characteristics, timeout_seconds: float) -> None:
        self.characteristics = characteristics
        self._name = f"the link to {ticket.address}"
        self._seconds = timeout_seconds
        self._gate = Gate(self._name)
        self._asking = threading.Lock()
        self._broken = ""
        host, _, port = ticket.address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout_seconds)
        except (OSError, ValueError, OverflowError) as error:
            raise TransportGone(
                f"there is no lender at {ticket.address}: {error}; see whether its agent runs"
            ) from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer, _ = self._ask(ticket.to_dict(), b"")
            if answer:
                raise wire_errors.from_wire(answer.get("error"))
        except BaseException:
            self._socket.close()
            raise

    def open(self, key: Key) -> None:
        """Have the lender look at the key, by a read of nothing."""
        self.read_into(key, 0, bytearray())

    def forget(self, key: Key) -> None:
        """Nothing is held for a key."""

    def flush(self) -> None:
        """Nothing is under way after a write; ask the lender for a sign of life."""
        _, error = self._run((), ())
        if error is not None:
            raise error

    def close(self) -> None:
        """Hang up."""
        first = self._gate.shut()
        if first:
            with suppress(OSError):  # the lender was quicker
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits for an answer
        self._gate.wait_empty()
        if first:
            self._socket.close()

    def _run(self, operations: Sequence[Operation], local: Sequence[memoryview]) -> tuple[int, PondError | None]:
        try:
            with self._gate:
                both = list(zip(operations, local, strict=True))
                body = b"".join(buffer for each, buffer in both if isinstance(each, Write))
                answer, read = self._ask({"operations": [_describe(*each) for each in both]}, body)
                done, refused = int(answer["done"]), answer.get("error")
                _scatter(read, [buffer for each, buffer in both[:done] if isinstance(each, Read)])
        except PondError as error:
            return 0, error
        except (KeyError, TypeError, ValueError) as error:
            return 0, TransportGone(f"{self._name} is broken: the lender talks nonsense ({error!r})")
        return done, None if done == len(operations) else wire_errors.from_wire(refused)

    def _ask(self, header: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        with self._asking:
            if self._broken:
                raise TransportGone(self._broken)
            ends = time.monotonic() + self._seconds
            try:
                messages.send(self._socket, header, body, ends)
                return messages.receive(self._socket, ends)
            except TimeoutError as error:
                # A late answer would be taken for that of the next question.
                self._broken = f"{self._name} timed out before; connect again"
                raise TransportTimeout(
                    f"{self._name}: no answer within {self._seconds:g} s; see whether the lender is frozen"
                ) from error
            except (OSError, ValueError) as error:
                self._broken = f"{self._name} is broken ({error}); see whether the lender's agent runs"
                raise TransportGone(self._broken) from error


def _describe(operation: Operation, local: memoryview) -> dict[str, Any]:
    return {
        "write": isinstance(operation, Write),
        "key": operation.key.to_dict(),
        "offset": operation.offset,
        "length": local.nbytes,
    }


def _scatter(data: bytes, buffers: Sequence[memoryview]) -> None:
    """Put what was read into the buffers of the reads, in order; raises ValueError when it is too little."""
    rest = memoryview(data)
    for buffer in buffers:
        buffer[:] = rest[: buffer.nbytes]
        rest = rest[buffer.nbytes :]
