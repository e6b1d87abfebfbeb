"""Headers of requests and replies. A header is written after what it describes, and by one side only.

Neither is trusted to be whole, nor to be of the other side: a header ends with a tag of the session over its fields,
and what it describes has a tag of its own. What does not fit is taken for not written yet.
"""

import struct
from typing import NamedTuple, Self, TypeVar

from pondstack_rdma.rpc.layout import HEADER_BYTES, TAG_BYTES

FIELDS_BYTES = HEADER_BYTES - TAG_BYTES
_REQUEST = struct.Struct("<QQQIIIII4x")
_REPLY = struct.Struct("<QQQIIIIII")


class RequestHeader(NamedTuple):
    """Written by the client. `number` grows with each header, `sequence` with each call in the slot; 0 is none.

    `part`: the number under which the fragment is sealed, `length` its bytes as they are sealed. `fetched`: so many
    fragments of the reply were fetched. `withdrawn`: the client waits no more; do not begin.
    """

    number: int
    sequence: int
    part: int
    fragment: int
    fragments: int
    length: int
    fetched: int = 0
    withdrawn: int = 0

    def pack(self) -> bytes:
        """Return its fields as bytes."""
        return _REQUEST.pack(*self)

    @classmethod
    def unpack(cls, fields: bytes) -> Self:
        """Undo pack."""
        return cls(*_REQUEST.unpack(fields))


class ReplyHeader(NamedTuple):
    """Written by the server. `sequence`: of the call that was taken last; `taken`: so many fragments of it.

    `number`, `part` and `length`: as in requests. `fragments` 0: no reply yet. `beats` grows while the call is carried
    out. `closing`: nothing is taken any more.
    """

    number: int = 0
    sequence: int = 0
    part: int = 0
    taken: int = 0
    fragment: int = 0
    fragments: int = 0
    length: int = 0
    beats: int = 0
    closing: int = 0

    def pack(self) -> bytes:
        """Return its fields as bytes."""
        return _REPLY.pack(*self)

    @classmethod
    def unpack(cls, fields: bytes) -> Self:
        """Undo pack."""
        return cls(*_REPLY.unpack(fields))


Header = TypeVar("Header", RequestHeader, ReplyHeader)
