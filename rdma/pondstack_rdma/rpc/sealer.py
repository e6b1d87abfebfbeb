"""Both ends of the frames in a slot: one numbers and seals them, the other one opens what is new and not forged."""

import math
from collections.abc import Callable
from typing import Generic

from pondstack.domain.errors import PondError, Refused
from pondstack_rdma.model import ReadableBuffer
from pondstack_rdma.rpc.frame import FIELDS_BYTES, Header
from pondstack_rdma.rpc.session import Kind, Session

TORN_SECONDS = 1.0
"""For so long a frame that does not open may be one that is being written."""


class FrameSealer:
    """Seals the frames that this end writes into a slot. Used by one thread at a time."""

    def __init__(self, session: Session, slot: int) -> None:
        self._session = session
        self._slot = slot
        self._number = 0

    def part(self, data: ReadableBuffer) -> tuple[int, bytes]:
        """Return the number of a part, for its header, and its bytes."""
        number = self._next()
        return number, self._session.seal(Kind.PART, self._slot, number, data)

    def header(self, header: Header) -> bytes:
        """Return the bytes of a header, with a number of its own."""
        number = self._next()
        fields = header._replace(number=number).pack()
        return fields + self._session.seal(Kind.HEADER, self._slot, number, b"", fields)

    def _next(self) -> int:
        # Also what AES-GCM asks for: under one key, no number comes twice.
        self._number += 1
        return self._number


class FrameOpener(Generic[Header]):
    """Opens the frames that the other end wrote into a slot. Used by one thread at a time.

    What does not open, or is older than what was accepted, is never acted on. It is refused once the same bytes have
    been there for `torn_seconds`: before, they may be half of a frame. `refused` is told of that, once.
    """

    def __init__(
        self,
        session: Session,
        slot: int,
        kind: type[Header],
        refused: Callable[[PondError], None],
        torn_seconds: float = TORN_SECONDS,
    ) -> None:
        self._session = session
        self._slot = slot
        self._kind: type[Header] = kind
        self._refused = refused
        self._torn_seconds = torn_seconds
        self._accepted = 0
        self._suspect: ReadableBuffer = b""
        self._since_seconds = math.inf

    def header(self, raw: bytes, now: float) -> Header | None:
        """Return the header that these bytes are, if the other end wrote it after the last one that was accepted."""
        fields = raw[:FIELDS_BYTES]
        header = self._kind.unpack(fields)
        if self._session.open(Kind.HEADER, self._slot, header.number, raw[FIELDS_BYTES:], fields) is None:
            self._doubt(raw, now, "is not of the other end, or was never finished")
            return None
        if header.number <= self._accepted:
            self._doubt(raw, now, "came before")
            return None
        return header

    def accept(self, header: Header) -> None:
        """From now on, open newer headers only."""
        self._accepted = header.number

    def part(self, header: Header, sealed: bytes, now: float) -> bytes | None:
        """Return what a header of the other end describes, None for what is half-written, or forged."""
        opened = self._session.open(Kind.PART, self._slot, header.part, sealed)
        if opened is None:
            self._doubt(sealed, now, "has a part that is not of the other end, or was never finished")
        return opened

    def _doubt(self, found: bytes, now: float, why: str) -> None:
        if found != self._suspect:
            self._suspect, self._since_seconds = found, now
        elif now - self._since_seconds >= self._torn_seconds:
            self._since_seconds = math.inf
            self._refused(
                Refused(
                    f"a frame in slot {self._slot} of session {self._session.name} of calls over RDMA {why}: somebody "
                    "else writes into memory, or on the RDMA network, where only hosts may be"
                )
            )
