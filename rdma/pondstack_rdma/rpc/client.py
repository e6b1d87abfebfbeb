"""The client: as many calls at once as it has slots, from any threads; each waits for its own reply."""

import logging
import queue
import threading
import time
from collections.abc import Callable

from pondstack.domain.errors import PondError
from pondstack_rdma.base import Link
from pondstack_rdma.errors import RequestNotSent
from pondstack_rdma.rpc.call import Call, ClientSlot
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.session import Session

LOG = logging.getLogger(__name__)


class RpcClient:
    """Owns its link. Opens its keys in the constructor; raises AccessRefused, TransportGone.

    `session`: that of the offer. `refused` is told of frames that are not the server's.
    """

    def __init__(
        self,
        link: Link,
        offer: Offer,
        session: Session,
        refused: Callable[[PondError], None] = lambda error: LOG.warning("%s", error),
    ) -> None:
        link.open(offer.region)
        link.open(offer.bells)
        self._link = link
        self._lock = threading.Lock()
        self._inside = 0
        self._leaving = False
        self._max_bytes = offer.layout.max_message_bytes
        self._free: queue.Queue[ClientSlot] = queue.Queue()
        self.usable = True
        """False after a failure: let the calls under way end, close this, and ask for another offer."""
        for number in range(offer.layout.slots):
            self._free.put(ClientSlot(link, offer, session, number, refused))

    def call(self, payload: bytes, timeout_seconds: float, monitor_seconds: float | None = None) -> bytes:
        """Return the reply. `monitor_seconds`: the longest time without a sign of the server.

        Raises RequestNotSent when the call was not carried out and never will be, AnswerLost when nobody knows.
        """
        ends = time.monotonic() + timeout_seconds
        if len(payload) > self._max_bytes:
            raise RequestNotSent(f"a request of {len(payload)} bytes is longer than {self._max_bytes}")
        with self._lock:
            if not self.usable:
                raise RequestNotSent("this connection has failed before")
            self._inside += 1
        try:
            return self._call(payload, timeout_seconds, ends, monitor_seconds)
        finally:
            self._left()

    def _call(self, payload: bytes, timeout_seconds: float, ends: float, monitor_seconds: float | None) -> bytes:
        try:
            slot = self._free.get(timeout=timeout_seconds)
        except queue.Empty:
            raise RequestNotSent("all slots are in use by other calls; raise [rpc] slots") from None
        call = Call(slot, payload, ends, monitor_seconds)
        try:
            return call.run()
        except BaseException as error:
            # A busy server that had taken the request is not at fault; whatever else it was, do not come again.
            self.usable = self.usable and not call.doubtful and not isinstance(error, RequestNotSent)
            raise
        finally:
            self.usable = self.usable and not call.doubtful
            self._free.put(slot)

    def _left(self) -> None:
        with self._lock:
            self._inside -= 1
            last = self._leaving and not self._inside
        if last:
            self._link.close()

    def close_when_idle(self) -> None:
        """Take no new call, and hang up with the end of the last one under way."""
        with self._lock:
            self.usable, self._leaving = False, True
            idle = not self._inside
        if idle:
            self._link.close()

    def close(self) -> None:
        """Hang up; who waits for a reply gets AnswerLost. Idempotent."""
        self.usable = False
        self._link.close()
