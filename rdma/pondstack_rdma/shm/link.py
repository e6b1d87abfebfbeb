"""Borrower of shared memory: after a region is open, an access is a copy and two looks at a word."""

import os
import select
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.base import Link
from pondstack_rdma.errors import KeyRevoked, RegistrationFailed, TransportGone, TransportTimeout
from pondstack_rdma.gate import Gate
from pondstack_rdma.model import Characteristics, Key, Operation, Ticket
from pondstack_rdma.shm import messages
from pondstack_rdma.shm.address import connect
from pondstack_rdma.shm.control import ControlView
from pondstack_rdma.shm.window import Window


class ShmLink(Link):
    """Connects in its constructor; raises WrongBorrower, TransportGone."""

    def __init__(self, ticket: Ticket, characteristics: Characteristics, timeout_seconds: float) -> None:
        self.characteristics = characteristics
        self._name = f"the link to {ticket.address}"
        self._seconds = timeout_seconds
        self._gate = Gate(self._name)
        self._asking = threading.Lock()
        self._asked = 0
        self._windows: dict[Key, Window] = {}
        self._socket = connect(ticket.address, timeout_seconds)
        try:
            _, fd = self._ask(ticket.to_dict(), None)
            try:
                self._control = ControlView(fd)
            finally:
                os.close(fd)
        except BaseException:
            self._socket.close()
            raise
        # Unlike Python's poll objects it may be asked by several threads at once.
        self._alive = select.epoll()
        self._alive.register(self._socket, select.EPOLLRDHUP)

    def open(self, key: Key) -> None:
        """Map the region of a key; needs the lender's CPU the first time."""
        with self._gate:
            self._check_alive()
            self._window(key)

    def forget(self, key: Key) -> None:
        """Unmap the region of a key."""
        window = self._windows.pop(key, None)
        if window is not None:
            window.close()

    def flush(self) -> None:
        """Nothing is under way after a write; see that the lender is there."""
        with self._gate:
            self._check_alive()

    def close(self) -> None:
        """Hang up, and unmap all."""
        first = self._gate.shut()
        if first:
            with suppress(OSError):  # the lender was quicker
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits for an answer
        self._gate.wait_empty()
        if first:
            for key in list(self._windows):
                self.forget(key)
            self._control.close()
            self._alive.close()
            self._socket.close()

    def _run(self, operations: Sequence[Operation], local: Sequence[memoryview]) -> tuple[int, PondError | None]:
        done = 0
        try:
            with self._gate:
                self._check_alive()
                for operation, buffer in zip(operations, local, strict=True):
                    self._access(operation, buffer)
                    done += 1
        except PondError as error:
            return done, error
        return done, None

    def _access(self, operation: Operation, local: memoryview) -> None:
        window = self._window(operation.key)
        try:
            window.carry_out(operation, local)
        except KeyRevoked:
            # The mapping would keep pages of the host. The window stays, closed: it answers without the lender.
            window.close()
            raise

    def _check_alive(self) -> None:
        # A frozen process keeps its socket, a killed one does not: as with a connection that its device keeps.
        if self._alive.poll(0):
            raise TransportGone(f"{self._name} is broken: the lender has ended; go on from the mirror")

    def _window(self, key: Key) -> Window:
        window = self._windows.get(key)
        if window is None:
            with self._asking:
                window = self._windows.get(key)
                if window is None:
                    window = self._windows[key] = self._map(key)
        return window

    def _map(self, key: Key) -> Window:
        self._asked += 1
        answer, fd = self._ask({"id": self._asked, "key": key.to_dict()}, self._asked)
        try:
            window = Window(key, fd, int(answer["slot"]), self._control)
        except OSError as error:
            raise RegistrationFailed(f"{key.size_bytes} bytes cannot be mapped: {error}") from error
        finally:
            os.close(fd)
        try:
            window.check_lives()
        except KeyRevoked:
            window.close()  # it may just have filled a revoked region with pages again
            raise
        return window

    def _ask(self, message: dict[str, Any], number: int | None) -> tuple[dict[str, Any], int]:
        """Send a message and return its answer and the descriptor beside it; raises what the lender refuses."""
        ends = time.monotonic() + self._seconds
        try:
            self._socket.settimeout(self._seconds)
            messages.send(self._socket, message)
            while True:
                self._socket.settimeout(max(ends - time.monotonic(), 0.001))
                answer, fds = messages.receive(self._socket)
                if answer.get("id") == number:
                    break
                messages.close_all(fds)  # of a question that was given up
        except TimeoutError as error:
            raise TransportTimeout(
                f"{self._name}: no answer within {self._seconds:g} s; see whether the lender is frozen"
            ) from error
        except (OSError, ValueError) as error:
            raise TransportGone(f"{self._name} is broken ({error}); see whether the lender's agent runs") from error
        if "error" in answer or len(fds) != 1:
            messages.close_all(fds)
            raise wire_errors.from_wire(answer.get("error"))
        return answer, fds[0]
