"""Serves pages over NBD: one thread per connection, commands of a connection in order, as many connections as wanted.

Offsets and lengths are whole pages. A write that was answered is in the mirror's queue of this process, and with a
lender where there is room; with FUA, or after a FLUSH, it is in the mirror. EIO: nobody has the newest content of a
page, and no other one is given for it. ENOSPC: the mirror takes no more at present; what was there stays.
"""

import logging
import socket
from contextlib import suppress
from pathlib import Path

from pondstack.domain.errors import PondError
from pondstack_agent.helper.unix_socket import listen, trusted
from pondstack_agent.pagestore import nbd
from pondstack_agent.pagestore.handshake import Export, greet, receive
from pondstack_agent.pagestore.nbd import Verb
from pondstack_rdma.acceptor import Server
from pondstack_rdma.errors import MirrorBusy
from pondstack_rdma.sealing import PAGE_BYTES
from pondstack_rdma.store.pages import RemotePages

LOG = logging.getLogger(__name__)

SOCKET = "nbd.sock"
MAX_PAGES = 1024
"""With one command: 4 MiB, as much as RemotePages takes at once."""
_GREETING_SECONDS = 10.0


class Exporter:
    """Serves `count` pages on `nbd.sock` in a folder, to the user of this process and to root."""

    def __init__(self, folder: Path, pages: RemotePages, count: int, flush_seconds: float) -> None:
        self._pages, self._flush_seconds = pages, flush_seconds
        self._export = Export(count * PAGE_BYTES, MAX_PAGES * PAGE_BYTES)
        self._server = Server(listen(folder, SOCKET), str(folder / SOCKET), self._serve)

    def close(self) -> None:
        """Hang up on everybody."""
        self._server.close()

    def _serve(self, link: socket.socket) -> None:
        if not trusted(link):
            return
        with suppress(OSError):  # it has gone
            try:
                link.settimeout(_GREETING_SECONDS)
                if not greet(link, self._export):
                    return
                link.settimeout(None)
                while self._command(link):
                    pass
            except ValueError as error:
                LOG.warning("An NBD client is hung up on: %s", error)

    def _command(self, link: socket.socket) -> bool:
        """Carry out one command; False at the end."""
        magic, flags, verb, cookie, offset, size = nbd.COMMAND.unpack(receive(link, nbd.COMMAND.size))
        if magic != nbd.REQUEST or (verb == Verb.WRITE and size > self._export.max_bytes):
            raise ValueError("what it sent is no command, or one that is too long")
        if verb == Verb.DISCONNECT:
            return False
        data = receive(link, size) if verb == Verb.WRITE else b""
        try:
            found = self._do(verb, flags, offset, size, data)
            link.sendall(nbd.answer(nbd.GOOD, cookie, found))
        except _BadCommandError:
            link.sendall(nbd.answer(nbd.INVALID, cookie))
        except MirrorBusy as error:
            LOG.warning("A write is refused: %s", error)
            link.sendall(nbd.answer(nbd.NO_ROOM, cookie))
        except PondError as error:
            LOG.warning("A command fails: %s", error)
            link.sendall(nbd.answer(nbd.FAILED, cookie))
        return True

    def _do(self, verb: int, flags: int, offset: int, size: int, data: bytes) -> bytes:
        if verb == Verb.FLUSH:
            self._pages.flush(self._flush_seconds)
            return b""
        pages = self._range(offset, size)
        if verb == Verb.READ:
            return b"".join(self._pages.read_many(pages))
        if verb != Verb.WRITE or flags & ~nbd.FUA:
            raise _BadCommandError
        view, first = memoryview(data), pages.start
        self._pages.write_many(
            {page: view[(page - first) * PAGE_BYTES : (page - first + 1) * PAGE_BYTES] for page in pages}
        )
        if flags & nbd.FUA:
            self._pages.flush(self._flush_seconds)
        return b""

    def _range(self, offset: int, size: int) -> range:
        export = self._export
        if offset % PAGE_BYTES or size % PAGE_BYTES or not 0 < size <= export.max_bytes:
            raise _BadCommandError
        if offset + size > export.size_bytes:
            raise _BadCommandError
        return range(offset // PAGE_BYTES, (offset + size) // PAGE_BYTES)


class _BadCommandError(Exception):
    """The command is none that this export has promised to carry out."""
