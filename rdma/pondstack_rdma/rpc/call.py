"""One call of a client: posts the request, fetches the reply. What is known of its outcome is in its error."""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pondstack.domain.errors import PondError
from pondstack_rdma.base import Link
from pondstack_rdma.errors import AccessRefused, AnswerLost, PartialBatch, RequestNotSent, TransportTimeout
from pondstack_rdma.model import Write
from pondstack_rdma.rpc.frame import ReplyHeader, RequestHeader
from pondstack_rdma.rpc.layout import BELL_BYTES, HEADER_BYTES
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.pace import CLIENT
from pondstack_rdma.rpc.sealer import FrameOpener, FrameSealer
from pondstack_rdma.rpc.session import Session

T = TypeVar("T")

INLINE_BYTES = 448
"""Of a reply that are fetched with its header, in one access."""


class ClientSlot:
    """The client's end of a slot, used by one call at a time."""

    def __init__(
        self, link: Link, offer: Offer, session: Session, number: int, refused: Callable[[PondError], None]
    ) -> None:
        self.link = link
        self.offer = offer
        self.number = number
        self.sequence = 0
        self.rings = 0
        self.seen = bytearray(HEADER_BYTES + min(INLINE_BYTES, offer.layout.slot_bytes))
        self.shown: ReplyHeader | None = None
        """The newest header of the server, of which `raw` are the bytes."""
        self.raw = b""
        self.sealer = FrameSealer(session, number)
        self.opener = FrameOpener(session, number, ReplyHeader, refused)


class Call:
    """One request and its reply. Raises RequestNotSent when it never was, nor will be, carried out; else AnswerLost."""

    def __init__(self, slot: ClientSlot, payload: bytes, ends: float, monitor_seconds: float | None) -> None:
        slot.sequence += 1
        self._slot = slot
        self._link, self._offer, self._layout = slot.link, slot.offer, slot.offer.layout
        self._payload = memoryview(payload)
        self._fragments = self._layout.fragments(len(payload))
        self._ends = ends
        self._monitor = monitor_seconds
        self._posted = False
        """Whether the last fragment may have reached the server."""
        self.doubtful = False
        """Whether the link failed, or an access of this call may still come, late: not safe for other calls."""

    def run(self) -> bytes:
        """Return the reply."""
        for fragment in range(self._fragments):
            if fragment:
                self._await(partial(_taken, fragment))
            self._post(fragment)
        fragments, part = self._await(partial(self._fetch, 0))
        parts = [part]
        for fragment in range(1, fragments):
            self._acknowledge(fragment)
            parts.append(self._await(partial(self._fetch, fragment))[1])
        try:
            self._acknowledge(fragments)
        except AnswerLost:
            self.doubtful = True  # the server drops the reply by itself, later
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _post(self, fragment: int) -> None:
        size = self._layout.part_bytes
        part, sealed = self._slot.sealer.part(self._payload[fragment * size : (fragment + 1) * size])
        try:
            self._link.write(self._offer.region, self._layout.request(self._slot.number), sealed)
        except PondError as error:
            self.doubtful = True
            raise RequestNotSent(f"the request could not be written: {error.message}") from error
        last = fragment + 1 == self._fragments
        self._write_header(self._header(fragment, part=part, length=len(sealed)), last)

    def _header(self, fragment: int, *, part: int = 0, length: int = 0, fetched: int = 0, withdrawn: int = 0) -> bytes:
        sequence, fragments = self._slot.sequence, self._fragments
        header = RequestHeader(0, sequence, part, fragment, fragments, length, fetched, withdrawn)
        return self._slot.sealer.header(header)

    def _acknowledge(self, fetched: int) -> None:
        self._write_header(self._header(self._fragments - 1, fetched=fetched), True)

    def _write_header(self, header: bytes, last: bool) -> None:
        """Write a header, then ring. Written again after a time-out: a server takes each fragment once."""
        slot = self._slot
        slot.rings += 1
        bell = (slot.rings << 8 | slot.number).to_bytes(BELL_BYTES, "little")
        operations = (
            Write(self._offer.region, self._layout.header(slot.number), header),
            Write(self._offer.bells, self._offer.bell * BELL_BYTES, bell),
        )
        while True:
            try:
                self._link.batch(operations)
                self._posted = self._posted or last
                return
            except PartialBatch as error:
                reason = error.reason or error
                nothing_done = not error.done and isinstance(reason, AccessRefused)
                self._posted = self._posted or (last and not nothing_done)
                self.doubtful = True
                if not isinstance(reason, TransportTimeout) or time.monotonic() >= self._ends:
                    raise self._failed(f"the request could not be written: {reason.message}") from error

    def _await(self, wanted: Callable[[ReplyHeader], T | None]) -> T:
        """Look until the server shows what is wanted of this call; return that."""
        begun = sign = time.monotonic()
        before: ReplyHeader | None = None
        while True:
            shown = self._look()
            now = time.monotonic()
            if shown is not None and shown.sequence == self._slot.sequence:
                found = wanted(shown)
                if found is not None:
                    return found
                if shown != before:
                    before, sign = shown, now
            self._give_up(shown, now, sign)
            time.sleep(CLIENT.pause(now - begun))

    def _give_up(self, shown: ReplyHeader | None, now: float, sign: float) -> None:
        """Raise when there is nothing to wait for, or no time."""
        taken = shown is not None and shown.sequence == self._slot.sequence and shown.taken >= self._fragments
        if shown is not None and shown.closing and not taken:
            self._posted = False  # it takes nothing any more, and has not taken this
            raise self._failed("the server takes no more requests")
        silent = self._monitor is not None and now - sign >= self._monitor
        if silent or now >= self._ends:
            self.doubtful = self.doubtful or not taken
            self._withdraw()
            seconds = self._monitor if silent else None
            raise self._failed(f"no sign of the server for {seconds:g} s" if seconds else "no reply in time")

    def _look(self) -> ReplyHeader | None:
        slot = self._slot
        try:
            self._link.read_into(self._offer.region, self._layout.reply(slot.number), slot.seen)
        except PondError as error:
            self.doubtful = True
            if isinstance(error, TransportTimeout):
                return None
            raise self._failed(f"the reply could not be read: {error.message}") from error
        raw = bytes(slot.seen[:HEADER_BYTES])
        if raw != slot.raw:
            shown = slot.opener.header(raw, time.monotonic())
            if shown is None:
                return None
            slot.opener.accept(shown)
            slot.raw, slot.shown = raw, shown
        return slot.shown

    def _fetch(self, fragment: int, shown: ReplyHeader) -> tuple[int, bytes] | None:
        """Return how many fragments the reply has, and this one, when it is there as a whole."""
        if not shown.fragments or shown.fragment != fragment or shown.length > self._layout.slot_bytes:
            return None
        sealed = self._sealed(shown)
        part = None if sealed is None else self._slot.opener.part(shown, sealed, time.monotonic())
        return None if part is None else (shown.fragments, part)

    def _sealed(self, shown: ReplyHeader) -> bytes | None:
        seen = memoryview(self._slot.seen)[HEADER_BYTES:]
        if shown.length <= len(seen):
            return bytes(seen[: shown.length])
        try:
            at = self._layout.reply(self._slot.number) + HEADER_BYTES
            return self._link.read(self._offer.region, at, shown.length)
        except PondError as error:
            self.doubtful = True
            if isinstance(error, TransportTimeout):
                return None
            raise self._failed(f"the reply could not be read: {error.message}") from error

    def _withdraw(self) -> None:
        """Have a server that was frozen, and wakes up late, not begin with this."""
        try:
            self._link.write(
                self._offer.region,
                self._layout.header(self._slot.number),
                self._header(self._fragments - 1, withdrawn=1),
            )
        except PondError:
            self.doubtful = True  # the outcome is unknown, as it is said anyway

    def _failed(self, text: str) -> PondError:
        return AnswerLost(text) if self._posted else RequestNotSent(text)


def _taken(count: int, shown: ReplyHeader) -> bool | None:
    return True if shown.taken >= count else None
