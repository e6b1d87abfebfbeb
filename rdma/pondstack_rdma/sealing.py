"""Pages leave the host encrypted and authenticated, so that a lender learns nothing and can change nothing unseen.

AES-256-GCM with a key per VM. The VM, the page number and its version are authenticated along with the content, and the
borrower keeps version and tag of what it wrote last: a flipped bit, another page's content and an older content of the
same page are all detected. A sealed page is as long as the page, hence lies at the same offset.

What a lender still sees: which pages are written and read, and when.
"""

import struct
import threading

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pondstack.domain.errors import BadRequest, NotFound
from pondstack_rdma.errors import PageCorrupt
from pondstack_rdma.model import ReadableBuffer, WritableBuffer
from pondstack_rdma.secret_memory import random_secret

PAGE_BYTES = 4096
KEY_BYTES = 32
ROW_BYTES = 24
"""Of the borrower's memory per page: 0.6 %."""

_TAG_BYTES = 16
_VERSION = struct.Struct("<Q")
_NEVER = 0
_LIMIT = 2**48
_PURPOSE = b"pondstack page 1"


def new_key() -> memoryview:
    """Draw a key for a VM, into memory that is locked and in no core dump."""
    return random_secret(KEY_BYTES)


class PageSealer:
    """Seals the pages of one VM. `table` has ROW_BYTES per page, zeros at first, and may lie in shared memory.

    A table that is lost takes its key along: under the same key, a version that comes twice would tell the lender what
    both contents have in common. Threads may seal at once, but not the same page.
    """

    def __init__(self, key: bytes | memoryview, vm_uuid: str, pages: int, table: WritableBuffer | None = None) -> None:
        if len(key) != KEY_BYTES:
            raise BadRequest(f"a key of pages has {KEY_BYTES} bytes, not {len(key)}")
        if not 0 < pages <= _LIMIT:
            raise BadRequest(f"a VM has 1 to {_LIMIT} pages, not {pages}")
        self._rows = memoryview(bytearray(pages * ROW_BYTES) if table is None else table).cast("B")
        if self._rows.nbytes != pages * ROW_BYTES or self._rows.readonly:
            raise BadRequest(f"the table of {pages} pages is {pages * ROW_BYTES} writable bytes")
        self._cipher = AESGCM(key)
        self._vm = vm_uuid
        self._pages = pages
        self._lock = threading.Lock()

    def seal(self, page: int, data: ReadableBuffer) -> bytes:
        """Return the bytes of a page for the lender; from now on no other ones are taken for it.

        Raises NotFound for a page that the VM does not have, BadRequest unless it is PAGE_BYTES long.
        """
        self._check(page, data)
        version = self._next_version(page)
        sealed = self._cipher.encrypt(_nonce(page, version), data, self._about(page, version))
        start = page * ROW_BYTES + _VERSION.size
        self._rows[start : start + _TAG_BYTES] = sealed[PAGE_BYTES:]
        return sealed[:PAGE_BYTES]

    def open(self, page: int, sealed: ReadableBuffer) -> bytes:
        """Return the content of a page that came back from a lender.

        Raises PageCorrupt when that is not what was sealed last, NotFound when nothing was, BadRequest.
        """
        self._check(page, sealed)
        version, tag = self._row(page)
        if version == _NEVER:
            raise NotFound(f"page {page} of VM {self._vm} was never sealed")
        try:
            return self._cipher.decrypt(_nonce(page, version), bytes(sealed) + tag, self._about(page, version))
        except InvalidTag as error:
            raise PageCorrupt(
                f"page {page} of VM {self._vm} came back from its lender changed or out of date; read it from the "
                "mirror, and do not trust that lender"
            ) from error

    def _check(self, page: int, data: ReadableBuffer) -> None:
        if not 0 <= page < self._pages:
            raise NotFound(f"VM {self._vm} has the pages 0 to {self._pages - 1}, not {page}")
        if memoryview(data).nbytes != PAGE_BYTES:
            raise BadRequest(f"a page has {PAGE_BYTES} bytes, not {memoryview(data).nbytes}")

    def _row(self, page: int) -> tuple[int, bytes]:
        start = page * ROW_BYTES
        row = bytes(self._rows[start : start + ROW_BYTES])
        return _VERSION.unpack_from(row)[0], row[_VERSION.size :]

    def _next_version(self, page: int) -> int:
        # Written down before it is used: whoever goes on with the table after a crash never uses it again.
        with self._lock:
            version = self._row(page)[0] + 1
            if version >= _LIMIT:
                raise BadRequest(f"page {page} of VM {self._vm} was sealed {_LIMIT} times; give the VM a new key")
            _VERSION.pack_into(self._rows, page * ROW_BYTES, version)
        return int(version)

    def _about(self, page: int, version: int) -> bytes:
        return b"%s:%d:%d:%s" % (_PURPOSE, page, version, self._vm.encode())


def _nonce(page: int, version: int) -> bytes:
    """Unique under a key, as page and version together never come twice."""
    return page.to_bytes(6, "big") + version.to_bytes(6, "big")
