"""The lender's side of connections by librdmacm: one thread that lets borrowers in and hears of their end."""

import logging
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from pondstack.domain.errors import PondError
from pondstack_rdma.acceptor import MAX_LINKS
from pondstack_rdma.errors import NoDevice, TransportGone
from pondstack_rdma.verbs import handshake
from pondstack_rdma.verbs.cm import Event, Identifier, open_channel
from pondstack_rdma.verbs.path import Path
from pondstack_rdma.verbs.qp import QueuePair

LOG = logging.getLogger(__name__)

_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class AdmittedBorrower:
    """A borrower that is let in: with a queue pair that is connected at this side, and what it is told."""

    borrower: str
    pair: QueuePair
    reads: int
    answer: bytes


class Listener:
    """Listens on a free port of an address. `admit` makes a guest of a request, or raises what is refused.

    `lock` is held while queue pairs are made and given back. Raises NoDevice.
    """

    def __init__(self, address: str, admit: Callable[[bytes, Path], AdmittedBorrower], lock: threading.RLock) -> None:
        self._admit, self._lock = admit, lock
        self._guests: dict[int, tuple[AdmittedBorrower, Identifier]] = {}
        self._channel = open_channel()
        try:
            self._listening = self._channel.listen(address, _BACKLOG)
        except OSError as error:
            self._channel.close()
            raise NoDevice(
                f"librdmacm does not listen on {address}: {error}; see `ip address` and `rdma link`"
            ) from error
        self.port = self._listening.port
        self._woken, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=f"let in at {address}:{self.port}", daemon=True)
        self._thread.start()

    def borrower(self, number: int) -> str:
        """Return who is connected to a queue pair of this side; raises TransportGone."""
        try:
            return self._guests[number][0].borrower
        except KeyError:
            raise TransportGone("this connection has ended at the lender; connect again") from None

    def end(self, number: int) -> None:
        """End the connection of a queue pair; idempotent."""
        guest, identifier = self._guests.pop(number, (None, None))  # of several threads one gets it
        if guest is not None and identifier is not None:
            with self._lock:
                guest.pair.close()
            identifier.close()

    def close(self) -> None:
        """Let nobody in, hang up on everybody; not under the lock, nor twice."""
        self._waker.close()
        self._thread.join()
        for number in list(self._guests):
            self.end(number)
        self._listening.close()
        self._channel.close()
        self._woken.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        poll.register(self._woken.fileno(), select.POLLIN)
        while all(ready != self._woken.fileno() for ready, _ in poll.poll()):
            try:
                event = self._channel.event()
                if event is not None:
                    self._take(*event)
            except (OSError, PondError) as error:
                LOG.warning("A borrower could not be connected, or its end not be seen: %s", error)

    def _take(self, kind: int, identifier: Identifier, _status: int, data: bytes) -> None:
        if kind == Event.REQUEST:
            self._greet(identifier, data)
        elif kind != Event.ESTABLISHED:
            for number, (_, its) in list(self._guests.items()):
                if its is identifier:
                    self.end(number)

    def _greet(self, identifier: Identifier, request: bytes) -> None:
        try:
            if len(self._guests) >= MAX_LINKS:
                raise TransportGone(f"this lender has {MAX_LINKS} links; it takes no more")
            guest = self._admit(request, Path(*identifier.path()))
        except PondError as error:
            with suppress(OSError):  # it has given up meanwhile
                identifier.reject(handshake.refusal(error))
            identifier.close()
            return
        self._guests[guest.pair.number] = guest, identifier
        try:
            identifier.accept(guest.pair.number, guest.reads, guest.answer)
        except OSError:
            self.end(guest.pair.number)
            raise
