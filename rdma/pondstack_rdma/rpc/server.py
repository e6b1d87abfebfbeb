"""The server: one thread that looks for requests, in memory that clients write without it.

A client rings by writing its own word of the region of bells, so that a look at that one region shows who has written,
however many clients there are. A bell is a hint: all regions are looked at now and then, whatever the bells say.
"""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import count

from pondstack.domain.errors import PondError, Unavailable
from pondstack_rdma.base import Lender
from pondstack_rdma.errors import RevokeFailed, TransportGone
from pondstack_rdma.rpc.connection import Connection, Request
from pondstack_rdma.rpc.layout import BELL_BYTES, Layout, pages
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.pace import SERVER, Pace
from pondstack_rdma.rpc.sealer import TORN_SECONDS
from pondstack_rdma.rpc.session import KeyPair

LOG = logging.getLogger(__name__)

_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ServerTerms:
    """Bounds of a server. `pace`: how it waits; its longest pause is what a call after a silence may wait."""

    pace: Pace = SERVER
    max_clients: int = 64
    max_waiting_bytes: int = 64 * 2**20
    """Of requests of several fragments that are on their way, and of replies that were not fetched."""
    sweep_seconds: float = 0.5
    """Between two looks at everything."""
    stalled_seconds: float = 30.0
    """A half request, or a reply that nobody fetches, is dropped."""
    silent_seconds: float = 300.0
    """A client without requests loses its region; it asks for another one when it has some."""
    torn_seconds: float = TORN_SECONDS
    """A frame that does not open for so long is not half-written but forged."""
    linger_seconds: float = 1.0
    """For so long a region that is given up stays readable, for what its client has not fetched."""


class RpcServer:
    """Owns its lender. `deliver` is called by the server's thread with each request, and must not block.

    `refused` is told, by the same thread, of frames that are not their client's.
    """

    def __init__(
        self,
        lender: Lender,
        deliver: Callable[[Request], None],
        layout: Layout | None = None,
        terms: ServerTerms | None = None,
        refused: Callable[[PondError], None] = lambda error: LOG.warning("%s", error),
    ) -> None:
        self._lender = lender
        self._deliver = deliver
        self._refused = refused
        self._layout = layout or Layout()
        self._terms = terms or ServerTerms()
        self._own_bell = self._terms.max_clients * BELL_BYTES  # behind those of the clients
        self._wakes = count(1)
        self._bells = lender.register(pages(self._own_bell + BELL_BYTES))
        self._rung = bytes(self._own_bell + BELL_BYTES)
        self._connections: dict[int, Connection] = {}
        self._leaving: dict[int, float] = {}
        self._woken: deque[int] = deque()
        self._taking = True
        self._stopping = threading.Event()
        self._lock = threading.RLock()
        self._swept = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="requests over RDMA", daemon=True)
        self._thread.start()

    def offer(self, client_public: bytes) -> Offer:
        """Return what one more client calls with, whose public key of this session that is (KeyPair).

        Raises BadRequest, Unavailable when there are too many that all call, TransportGone, RegistrationFailed.
        """
        # It is the borrower's name, too: who was here before has no protection domain and no ticket of this one.
        name = f"client-{secrets.token_hex(8)}"
        pair = KeyPair()
        session = pair.serve(client_public, name)
        with self._lock:
            if not self._taking:
                raise TransportGone("this server takes no more requests")
            bell = self._free_bell()
            region = self._lender.register(self._layout.region_bytes)
            try:
                key, bells = (self._lender.export(each, name) for each in (region, self._bells))
            except BaseException:
                self._lender.dismiss(name)
                self._lender.deregister(region)
                raise
            offer = Offer(self._lender.admit(name), key, bells, bell, name, pair.public, self._layout)
            self._connections[bell] = Connection(
                self._lender,
                region,
                offer,
                session,
                self._wake,
                self._refused,
                self._terms.torn_seconds,
                time.monotonic(),
            )
            return offer

    @property
    def clients(self) -> int:
        """How many have a region."""
        return len(self._connections)

    def stop(self) -> None:
        """Take nothing any more; when it returns nothing is delivered any more. Replies go out still. Idempotent."""
        with self._lock:
            if self._taking:
                self._taking = False
                for connection in self._connections.values():
                    connection.shut()

    def close(self) -> None:
        """Stop, wait a little until what was answered is fetched, and give all memory back. Idempotent."""
        self.stop()
        ends = time.monotonic() + self._terms.linger_seconds
        while time.monotonic() < ends and any(item.busy for item in list(self._connections.values())):
            self._stopping.wait(self._terms.pace.longest_seconds)
        self._stopping.set()
        self._wake(0)
        self._thread.join()
        with self._lock:
            self._connections.clear()
            self._lender.close()

    def _free_bell(self) -> int:
        for bell in range(self._terms.max_clients):
            if bell not in self._connections:
                return bell
        idle = [item for item in self._connections.values() if not item.busy]
        if not idle:
            raise Unavailable(f"{len(self._connections)} clients call at once; raise [rpc] max_clients")
        oldest = min(idle, key=lambda item: item.active_seconds)
        oldest.shut()
        self._drop(oldest)
        return oldest.offer.bell

    def _run(self) -> None:
        waited_from = now = time.monotonic()
        pace = self._terms.pace
        while not self._stopping.is_set():
            try:
                found = self._step(now)
                now = time.monotonic()
                if found:
                    waited_from = now
                pause = pace.pause(now - waited_from)
                time.sleep(pause)
                if pause >= pace.longest_seconds > 0.0:
                    self._doze(pause, now)
                    now = time.monotonic()
            except TransportGone:
                if not self._stopping.is_set():
                    LOG.error("The memory of calls over RDMA is gone; its clients go on by other ways")
                return

    def _doze(self, pause: float, now: float) -> None:
        """Look at the bells only, until somebody rings or it is time to sweep: it costs less than other looks."""
        looks = int((self._swept + self._terms.sweep_seconds - now) / pause)
        if looks > 0 and not self._woken:
            self._lender.watch(self._bells, 0, self._rung, pause, looks)

    def _wake(self, bell: int) -> None:
        """Have a client's region looked at soon, by a ring of the server's own bell."""
        self._woken.append(bell)
        try:
            self._lender.store(self._bells, self._own_bell, next(self._wakes).to_bytes(BELL_BYTES, "little"))
        except PondError:
            return  # the lender is closed, or has no memory: then it is seen at the next sweep, if there is one

    def _step(self, now: float) -> bool:
        """Look once: whether somebody had rung."""
        rung = self._ringing()
        if now - self._swept >= self._terms.sweep_seconds:
            self._swept = now
            self._sweep(now)
            for bell in list(self._connections):
                self._serve(bell)
        for bell in rung:
            self._serve(bell)
        return bool(rung)

    def _ringing(self) -> Set[int]:
        bells = self._lender.load(self._bells, 0, len(self._rung))
        if bells == self._rung and not self._woken:
            return _NOBODY
        rung = {self._woken.popleft() for _ in range(len(self._woken))}
        if bells != self._rung:
            size = BELL_BYTES
            before, self._rung = self._rung, bells
            starts = range(0, len(bells), size)
            rung.update(at // size for at in starts if bells[at : at + size] != before[at : at + size])
        return rung

    def _serve(self, bell: int) -> None:
        # Under the lock until all is delivered: after stop() has had it, nothing is. The time is taken under it, too:
        # a client that calls after another one came has been silent for less long.
        with self._lock:
            now = time.monotonic()
            connection = self._connections.get(bell)
            if connection is None:
                return
            try:
                for request in connection.serve(now, self._room):
                    self._deliver(request)
            except TransportGone:
                raise
            except PondError as error:
                LOG.warning("A client of calls over RDMA is hung up on: %s", error)
                connection.shut()
                self._drop(connection)

    def _room(self, more_bytes: int) -> bool:
        reserved = sum(item.reserved_bytes for item in self._connections.values())
        return not reserved or reserved + more_bytes <= self._terms.max_waiting_bytes

    def _sweep(self, now: float) -> None:
        with self._lock:
            for bell, connection in list(self._connections.items()):
                connection.tidy(now - self._terms.stalled_seconds)
                if bell in self._leaving:
                    if now >= self._leaving[bell]:
                        self._drop(connection)
                elif now - connection.active_seconds >= self._terms.silent_seconds and not connection.busy:
                    connection.shut()
                    self._leaving[bell] = now + self._terms.linger_seconds

    def _drop(self, connection: Connection) -> None:
        self._leaving.pop(connection.offer.bell, None)
        del self._connections[connection.offer.bell]
        try:
            self._lender.dismiss(connection.offer.session)
        except RevokeFailed as error:
            LOG.error("Memory of a client of calls over RDMA stays with it: %s", error)
            return
        self._lender.deregister(connection.region)
