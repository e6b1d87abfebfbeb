"""The server's end of one client: takes its requests, shows it the replies."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pondstack.domain.errors import BadRequest, PondError
from pondstack_rdma.base import Lender
from pondstack_rdma.model import Region
from pondstack_rdma.rpc.frame import RequestHeader
from pondstack_rdma.rpc.layout import HEADER_BYTES
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.sealer import FrameOpener, FrameSealer
from pondstack_rdma.rpc.session import Session
from pondstack_rdma.rpc.slot import Slot


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `reply` is called once, by whatever thread; raises BadRequest, with nothing done, when too long.

    `beat` tells the client that the call is carried out still. Both do nothing once the client waits no more; they
    raise TransportGone after the server's end.
    """

    payload: bytes
    reply: Callable[[bytes], None]
    beat: Callable[[], None]


class Connection:
    """A region, its slots, and how many calls are under way. `serve` is called by one thread."""

    def __init__(
        self,
        lender: Lender,
        region: Region,
        offer: Offer,
        session: Session,
        wake: Callable[[int], None],
        refused: Callable[[PondError], None],
        torn_seconds: float,
        now: float,
    ) -> None:
        self.offer = offer
        self.region = region
        self.active_seconds = now
        """When it had a request last, by the server's clock."""
        self._lender = lender
        self._wake = wake
        self._layout = offer.layout
        self._lock = threading.RLock()  # `room` asks for what this connection has, too
        numbers = range(offer.layout.slots)
        self._slots = [Slot(offer.layout) for _ in numbers]
        self._sealers = [FrameSealer(session, number) for number in numbers]
        self._openers = [FrameOpener(session, number, RequestHeader, refused, torn_seconds) for number in numbers]
        self._running = 0
        self._closing = False
        for number in numbers:
            self._show(number)

    def serve(self, now: float, room: Callable[[int], bool]) -> list[Request]:
        """Take what there is, of each slot at most one fragment. `room`: whether so many bytes may be kept.

        Raises BadRequest when the client does not keep to the rules, TransportGone.
        """
        seen = self._lender.load(self.region, 0, self._layout.headers_bytes)
        found = []
        for number, slot in enumerate(self._slots):
            raw = seen[number * HEADER_BYTES : (number + 1) * HEADER_BYTES]
            if raw == slot.done:
                continue
            header = self._openers[number].header(raw, now)
            if header is None:
                continue
            with self._lock:
                request = self._look(number, header, raw, now, room)
            if request is not None:
                found.append(request)
        return found

    def _look(
        self, number: int, header: RequestHeader, raw: bytes, now: float, room: Callable[[int], bool]
    ) -> Request | None:
        slot = self._slots[number]
        if header.withdrawn:
            slot.withdraw(header)
            self._finish(number, header, raw)
        elif header.fetched:
            if header.sequence == slot.shown.sequence:
                part = slot.fetched(header.fetched)
                slot.moved_seconds = now
                if part is not None:
                    self._show(number, part)
            self._finish(number, header, raw)
        elif slot.wants(header):
            return self._take(number, header, raw, now, room)
        return None

    def _take(
        self, number: int, header: RequestHeader, raw: bytes, now: float, room: Callable[[int], bool]
    ) -> Request | None:
        slot = self._slots[number]
        # Back-pressure: what is not taken stays in the client's own slot, and its header is looked at again.
        if self._closing or self._running >= self._layout.slots:
            return None
        if header.fragments > 1 and header.fragment == 0 and not room(header.fragments * self._layout.slot_bytes):
            return None
        sealed = self._lender.load(self.region, self._layout.request(number), header.length)
        payload = self._openers[number].part(header, sealed, now)
        if payload is None:
            return None
        whole = slot.take(header, payload)
        self._finish(number, header, raw)
        slot.moved_seconds = self.active_seconds = now
        self._show(number)
        if whole is None:
            return None
        self._running += 1
        return self._request(number, header.sequence, whole)

    def _finish(self, number: int, header: RequestHeader, raw: bytes) -> None:
        self._openers[number].accept(header)
        self._slots[number].done = raw

    def _request(self, number: int, sequence: int, payload: bytes) -> Request:
        def reply(data: bytes) -> None:
            self._answer(number, sequence, data)

        def beat() -> None:
            with self._lock:
                if self._slots[number].shown.sequence == sequence:
                    self._slots[number].beat()
                    self._show(number)

        return Request(payload, reply, beat)

    def _answer(self, number: int, sequence: int, data: bytes) -> None:
        if len(data) > self._layout.max_message_bytes:
            raise BadRequest(f"a reply of {len(data)} bytes is longer than {self._layout.max_message_bytes}")
        with self._lock:
            self._running -= 1
            slot = self._slots[number]
            if slot.shown.sequence == sequence:
                self._show(number, slot.answer(data))
        self._wake(self.offer.bell)  # there is room for another request

    def _show(self, number: int, part: bytes | None = None) -> None:
        at, slot, sealer = self._layout.reply(number), self._slots[number], self._sealers[number]
        if part is not None:
            sealed_as, sealed = sealer.part(part)
            slot.shown = slot.shown._replace(part=sealed_as, length=len(sealed))
            self._lender.store(self.region, at + HEADER_BYTES, sealed)
        self._lender.store(self.region, at, sealer.header(slot.shown))

    def shut(self) -> None:
        """Take nothing any more, and say so; what is under way can be answered."""
        with self._lock:
            if not self._closing:
                self._closing = True
                for number, slot in enumerate(self._slots):
                    slot.shut()
                    self._show(number)

    @property
    def busy(self) -> bool:
        """Whether a call is under way, or its reply not fetched."""
        with self._lock:
            return self._running > 0 or any(slot.unfetched for slot in self._slots)

    @property
    def reserved_bytes(self) -> int:
        """Memory that its calls take."""
        with self._lock:
            return sum(slot.reserved_bytes for slot in self._slots)

    def tidy(self, since: float) -> None:
        """Drop what has not moved since then: its client is gone, or waits no more."""
        with self._lock:
            for slot in self._slots:
                if slot.reserved_bytes and slot.moved_seconds < since:
                    slot.forget()
