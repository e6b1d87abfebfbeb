"""Headers of requests and replies. A header is written after what it describes, and by one side only.

Neither is trusted to be whole: a header has a checksum of itself and one of its fragment. What does not fit is taken
for not written yet.
"""

import struct
from typing import NamedTuple, Self
from zlib import crc32

from pondstack_rdma.model import ReadableBuffer
from pondstack_rdma.rpc.layout import HEADER_BYTES

_REQUEST = struct.Struct("<QQIIIIII")
_REPLY = struct.Struct("<QQIIIIIII")


class RequestHeader(NamedTuple):
    """Written by the client. `sequence` grows with each call in the slot; 0 is none.

    `fetched`: so many fragments of the reply were fetched. `withdrawn`: the client waits no more; do not begin.
    """

    generation: int
    sequence: int
    fragment: int
    fragments: int
    length: int
    checksum: int
    fetched: int = 0
    withdrawn: int = 0

    def pack(self) -> bytes:
        """Return its bytes, with their checksum."""
        return _sealed(_REQUEST.pack(*self))

    @classmethod
    def unpack(cls, data: ReadableBuffer) -> Self | None:
        """Undo pack; None for what is half-written, or was never written."""
        return cls(*_REQUEST.unpack_from(data)) if _whole(data, _REQUEST.size) else None


class ReplyHeader(NamedTuple):
    """Written by the server. `sequence`: of the call that was taken last; `taken`: so many fragments of it.

    `fragments` 0: no reply yet. `beats` grows while the call is carried out. `closing`: nothing is taken any more.
    """

    generation: int
    sequence: int = 0
    taken: int = 0
    fragment: int = 0
    fragments: int = 0
    length: int = 0
    checksum: int = 0
    beats: int = 0
    closing: int = 0

    def pack(self) -> bytes:
        """Return its bytes, with their checksum."""
        return _sealed(_REPLY.pack(*self))

    @classmethod
    def unpack(cls, data: ReadableBuffer) -> Self | None:
        """Undo pack; None for what is half-written, or was never written."""
        return cls(*_REPLY.unpack_from(data)) if _whole(data, _REPLY.size) else None


def _sealed(packed: bytes) -> bytes:
    return (packed + crc32(packed).to_bytes(4, "little")).ljust(HEADER_BYTES, b"\0")


def _whole(data: ReadableBuffer, size: int) -> bool:
    # The zeros of a fresh region do not pass: their crc32 is not zero.
    return crc32(data[:size]) == int.from_bytes(data[size : size + 4], "little")
