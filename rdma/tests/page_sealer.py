"""The oracle of sealed pages: what rdma/native/store/sealer.c is to do, by another library (`cryptography`).

AES-256-GCM with a key per guest. The guest, the page's number and its version are authenticated along with the content;
version and tag are the table's: a flipped bit, another page's content and an older one of the same page do not open.
"""

import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PAGE_BYTES = 4096
TAG_BYTES = 16
ROW_BYTES = 24
"""Of the table, per page."""

_VERSION = struct.Struct("<Q")
_PURPOSE = b"pondstack page 1"


class PageSealer:
    """Seals the pages of one guest. `table` has ROW_BYTES per page, zeros at first."""

    def __init__(self, key: bytes, guest: str, table: bytearray) -> None:
        self._cipher, self._guest, self._table = AESGCM(key), guest, table

    def seal(self, page: int, data: bytes) -> bytes:
        """Return the bytes of a page for a lender or the mirror, under its next version."""
        version = self.row(page)[0] + 1
        sealed = self._cipher.encrypt(_nonce(page, version), data, self._about(page, version))
        self.put(page, version, sealed[PAGE_BYTES:])
        return sealed[:PAGE_BYTES]

    def open(self, page: int, sealed: bytes) -> bytes:
        """Return the content of a page; raises InvalidTag when that is not what the table says."""
        version, tag = self.row(page)
        return self._cipher.decrypt(_nonce(page, version), sealed + tag, self._about(page, version))

    def row(self, page: int) -> tuple[int, bytes]:
        """Return version and tag of a page."""
        row = bytes(self._table[page * ROW_BYTES : (page + 1) * ROW_BYTES])
        return _VERSION.unpack_from(row)[0], row[_VERSION.size :]

    def put(self, page: int, version: int, tag: bytes) -> None:
        """Write both down."""
        self._table[page * ROW_BYTES : (page + 1) * ROW_BYTES] = _VERSION.pack(version) + tag

    def _about(self, page: int, version: int) -> bytes:
        return b"%s:%d:%d:%s" % (_PURPOSE, page, version, self._guest.encode())


def _nonce(page: int, version: int) -> bytes:
    """Unique under a key, as page and version together never come twice."""
    return page.to_bytes(6, "big") + version.to_bytes(6, "big")
