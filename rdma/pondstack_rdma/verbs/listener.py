"""The lender's side of connections by librdmacm: one thread admits borrowers and handles their disconnection."""

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
from pondstack_rdma.verbs.cm import CmId, Event, open_channel
from pondstack_rdma.verbs.cm_attrs import CmAttrs
from pondstack_rdma.verbs.qp import QueuePair

LOG = logging.getLogger(__name__)

_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class AdmittedBorrower:
    """An admitted borrower, with a queue pair that is connected at this side, and the private data of the response."""

    borrower: str
    qp: QueuePair
    max_rd_atomic: int
    answer: bytes


class Listener:
    """Listens on a free port of an address. `admit` admits the sender of a request, or raises the refusal.

    The listener holds `lock` while it creates and destroys queue pairs. Raises NoDevice.
    """

    def __init__(
        self, address: str, admit: Callable[[bytes, CmAttrs], AdmittedBorrower], lock: threading.RLock
    ) -> None:
        self._admit, self._lock = admit, lock
        self._admitted: dict[int, tuple[AdmittedBorrower, CmId]] = {}
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
        self._thread = threading.Thread(target=self._run, name=f"admit at {address}:{self.port}", daemon=True)
        self._thread.start()

    def borrower(self, qpn: int) -> str:
        """Return the borrower that is connected to a queue pair of this side; raises TransportGone."""
        try:
            return self._admitted[qpn][0].borrower
        except KeyError:
            raise TransportGone("this connection has ended at the lender; connect again") from None

    def end(self, qpn: int) -> None:
        """End the connection of a queue pair; idempotent."""
        admitted, cm_id = self._admitted.pop(qpn, (None, None))  # only one of several threads gets it
        if admitted is not None and cm_id is not None:
            with self._lock:
                admitted.qp.close()
            cm_id.close()

    def end_all(self, borrower: str) -> None:
        """End all connections of a borrower."""
        for qpn, (admitted, _) in list(self._admitted.items()):
            if admitted.borrower == borrower:
                self.end(qpn)

    def close(self) -> None:
        """Stop listening, and disconnect all borrowers. The caller calls it once, and does not hold the lock."""
        self._waker.close()
        self._thread.join()
        for qpn in list(self._admitted):
            self.end(qpn)
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
                    self._handle(*event)
            except (OSError, PondError) as error:
                LOG.warning("A borrower could not be connected, or its end not be seen: %s", error)

    def _handle(self, kind: int, cm_id: CmId, _status: int, data: bytes) -> None:
        if kind == Event.REQUEST:
            self._answer(cm_id, data)
        elif kind != Event.ESTABLISHED:
            for qpn, (_, each) in list(self._admitted.items()):
                if each is cm_id:
                    self.end(qpn)

    def _answer(self, cm_id: CmId, request: bytes) -> None:
        try:
            if len(self._admitted) >= MAX_LINKS:
                raise TransportGone(f"this lender has {MAX_LINKS} links; it takes no more")
            with self._lock:  # whoever ends a borrower meanwhile ends this connection, too
                admitted = self._admit(request, CmAttrs(*cm_id.attrs()))
                self._admitted[admitted.qp.qpn] = admitted, cm_id
        except PondError as error:
            with suppress(OSError):  # the borrower has given up meanwhile
                cm_id.reject(handshake.refusal(error))
            cm_id.close()
            return
        try:
            cm_id.accept(admitted.qp.qpn, admitted.max_rd_atomic, admitted.answer)
        except OSError:
            self.end(admitted.qp.qpn)
            raise
