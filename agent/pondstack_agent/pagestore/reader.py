"""A small NBD client for pages: what tests and operators read and write a page store with. One command at a time."""

import itertools
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from pondstack.domain.errors import BadRequest, PondError, Unavailable
from pondstack_agent.helper.unix_socket import connect
from pondstack_agent.pagestore import nbd
from pondstack_agent.pagestore.exporter import SOCKET
from pondstack_agent.pagestore.handshake import receive
from pondstack_agent.pagestore.nbd import Info, Option, OptionReply, Verb
from pondstack_rdma.errors import MirrorBusy, PageLost
from pondstack_rdma.sealing import PAGE_BYTES

_ERRORS: dict[int, type[PondError]] = {nbd.INVALID: BadRequest, nbd.NO_ROOM: MirrorBusy, nbd.FAILED: PageLost}


class PageReader:
    """Connects to the page store of a folder. Raises Unavailable when it is gone, and what the store answers:
    BadRequest, MirrorBusy, PageLost."""

    def __init__(self, folder: Path, timeout_seconds: float = 60.0) -> None:
        self._name = f"the page store in {folder}"
        self._lock = threading.Lock()
        self._cookies = itertools.count(1)
        try:
            self._link = connect(folder, SOCKET, timeout_seconds)
            try:
                self.pages = self._begin() // PAGE_BYTES
            except BaseException:
                self._link.close()
                raise
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self._name} does not answer: {error}; see whether it runs") from error

    def read(self, page: int, count: int = 1) -> bytes:
        """Return the bytes of pages."""
        return self._ask(Verb.READ, page * PAGE_BYTES, count * PAGE_BYTES)

    def write(self, page: int, data: bytes, durable: bool = False) -> None:
        """Write whole pages; `durable`: return once the mirror has them."""
        self._ask(Verb.WRITE, page * PAGE_BYTES, len(data), data, nbd.FUA if durable else 0)

    def flush(self) -> None:
        """Return once the mirror has all that was written before."""
        self._ask(Verb.FLUSH)

    def close(self) -> None:
        """Hang up; idempotent."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> int:
        greeting, options, _ = nbd.HELLO.unpack(receive(self._link, nbd.HELLO.size))
        if (greeting, options) != (nbd.GREETING, nbd.OPTIONS):
            raise ValueError("it does not speak NBD")
        wanted = nbd.pack_name(b"")
        flags = nbd.CLIENT_FLAGS.pack(nbd.FIXED_NEWSTYLE | nbd.NO_ZEROES)
        self._link.sendall(flags + nbd.OPTION.pack(nbd.OPTIONS, Option.GO, len(wanted)) + wanted)
        size = 0
        while True:
            _, _, kind, length = nbd.OPTION_ANSWER.unpack(receive(self._link, nbd.OPTION_ANSWER.size))
            data = receive(self._link, length)
            if kind == OptionReply.ACK:
                return size
            if kind != OptionReply.INFO:
                raise ValueError(f"it refuses to begin: {kind:#x}")
            if int.from_bytes(data[:2], "big") == Info.EXPORT:
                size = int.from_bytes(data[2:10], "big")

    def _ask(self, verb: Verb, offset: int = 0, size: int = 0, data: bytes = b"", flags: int = 0) -> bytes:
        with self._lock:
            cookie = next(self._cookies)
            try:
                self._link.sendall(nbd.COMMAND.pack(nbd.REQUEST, flags, verb, cookie, offset, size) + data)
                magic, error, seen = nbd.ANSWER.unpack(receive(self._link, nbd.ANSWER.size))
                if (magic, seen) != (nbd.REPLY, cookie):
                    raise ValueError("it answers something else")
                found = receive(self._link, size) if verb == Verb.READ and not error else b""
            except (OSError, ValueError) as failure:
                self._link.close()
                raise Unavailable(f"{self._name} is gone: {failure}; connect anew") from failure
        if error:
            raise _ERRORS.get(error, Unavailable)(f"{self._name} refuses to {verb.name.lower()}: see its log")
        return found
