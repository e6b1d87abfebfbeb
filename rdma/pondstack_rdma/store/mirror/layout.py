"""How pages lie in a mirror's file: a first block, a table of headers, then slots of one page each. Pure.

A page has no slot of its own: each write goes to a free one, and the page's former slot is free once the new one is
durable. So a write that is torn by a crash never damages what was durable before.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from pondstack.domain.errors import BadRequest
from pondstack_rdma.errors import MirrorDegraded
from pondstack_rdma.model import ReadableBuffer
from pondstack_rdma.sealing import PAGE_BYTES

HEADER_BYTES = 32
MOST_VERSION = 2**63 - 1
"""A version rises by one with each write of a page, so that none is reached; the next one has to fit into a header."""
_MAGIC = b"pondmir1"
_FIRST = struct.Struct("<8sQQI")
_HEADER = struct.Struct("<QQ8sI")
_CHECK = struct.Struct("<QQ")
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """Of a mirror of `pages` pages, with `spare` slots more: as many as are written at once."""

    pages: int
    spare: int

    @property
    def slots(self) -> int:
        """All slots."""
        return self.pages + self.spare

    @property
    def size_bytes(self) -> int:
        """Of the file."""
        return self.data_at(self.slots)

    def header_at(self, slot: int) -> int:
        """Where the header of a slot begins."""
        return PAGE_BYTES + slot * HEADER_BYTES

    def data_at(self, slot: int) -> int:
        """Where the page in a slot begins: aligned, so that the kernel reads nothing in order to write one."""
        table = -(-self.slots * HEADER_BYTES // PAGE_BYTES) * PAGE_BYTES
        return PAGE_BYTES + table + slot * PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Header:
    """What a slot holds: which version of which page, and the digest of all three."""

    page: int
    version: int
    digest: bytes

    def pack(self) -> bytes:
        """Return it as it is in the file, with a checksum of its own."""
        body = _HEADER.pack(self.page, self.version, self.digest, 0)[:-4]
        return (body + zlib.crc32(body).to_bytes(4, "little")).ljust(HEADER_BYTES, b"\0")

    def matches(self, data: ReadableBuffer) -> bool:
        """Whether this is the page that was written with the header."""
        return digest_of(self.page, self.version, data) == self.digest


def header_of(page: int, version: int, data: ReadableBuffer) -> Header:
    """Make the header of a page."""
    return Header(page, version, digest_of(page, version, data))


def digest_of(page: int, version: int, data: ReadableBuffer) -> bytes:
    """Tell torn and misplaced pages; 8 bytes, as chance is the only adversary of a local disk."""
    digest = blake2b(_CHECK.pack(page, version), digest_size=_DIGEST_BYTES)
    digest.update(data)
    return digest.digest()


def parse_headers(table: bytes, pages: int) -> Iterator[tuple[int, Header]]:
    """Yield the slots whose header is whole; an empty or torn header is none, and its slot is free."""
    for slot in range(len(table) // HEADER_BYTES):
        row = table[slot * HEADER_BYTES : (slot + 1) * HEADER_BYTES]
        page, version, digest, check = _HEADER.unpack_from(row)
        if 0 < version <= MOST_VERSION and page < pages and check == zlib.crc32(row[: _HEADER.size - 4]):
            yield slot, Header(page, version, digest)


def pack_first(layout: Layout) -> bytes:
    """Return the first block of a mirror."""
    body = _FIRST.pack(_MAGIC, layout.pages, layout.spare, 0)[:-4]
    return (body + zlib.crc32(body).to_bytes(4, "little")).ljust(PAGE_BYTES, b"\0")


def check_first(block: bytes, layout: Layout) -> bool:
    """Whether a file holds such a mirror already; raises MirrorDegraded, BadRequest for another file.

    False for an empty one: zeros.
    """
    if not any(block):
        return False
    magic, pages, spare, check = _FIRST.unpack_from(block)
    if magic != _MAGIC or check != zlib.crc32(block[: _FIRST.size - 4]):
        raise MirrorDegraded("the file is no mirror, or its first block is damaged; move it away and begin a new one")
    if (pages, spare) != (layout.pages, layout.spare):
        raise BadRequest(
            f"this mirror has {pages} pages and {spare} spare slots, not {layout.pages} and {layout.spare}"
        )
    return True
