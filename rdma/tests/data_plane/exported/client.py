"""An NBD client for tests, which says anything; the protocol by its own document, written apart from the server."""

import socket
import struct
from pathlib import Path
from typing import Self

from pondstack_rack.wait import wait_until

from ..processes import BLOCK, DEADLINE_SECONDS

READ, WRITE, DISCONNECT, FLUSH, TRIM, ZERO = 0, 1, 2, 3, 4, 6
FUA, NO_HOLE = 1, 2
EIO, EINVAL, ENOSPC = 5, 22, 28
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED = 1, 2, 3, 5, 6, 7, 8
ACK, SERVER, ABOUT, UNSUPPORTED, INVALID, UNKNOWN = 1, 2, 3, 0x80000001, 0x80000003, 0x80000006


class NbdError(Exception):
    """The server answered with an error, its number."""

    @property
    def number(self) -> int:
        """Of the error."""
        found: int = self.args[0]
        return found


class Nbd:
    """One connection. Raises ConnectionError, OSError when the server is gone."""

    def __init__(self, path: Path) -> None:
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(DEADLINE_SECONDS)
        self.link.connect(str(path))
        self._cookie = 0
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()

    def receive(self, size: int) -> bytes:
        """Take so many bytes."""
        data = bytearray()
        while len(data) < size:
            got = self.link.recv(size - len(data))
            if not got:
                raise ConnectionResetError("it hung up")
            data += got
        return bytes(data)

    def hello(self, flags: int = 3) -> None:
        """Greet."""
        assert self.receive(18) == b"NBDMAGICIHAVEOPT\0\3"
        self.link.sendall(struct.pack(">I", flags))

    def option(self, option: int, data: bytes = b"") -> list[tuple[int, bytes]]:
        """Send an option; its answers, up to the last one."""
        self.link.sendall(struct.pack(">8sII", b"IHAVEOPT", option, len(data)) + data)
        found: list[tuple[int, bytes]] = []
        while not found or found[-1][0] in (SERVER, ABOUT):
            magic, about, kind, size = struct.unpack(">QIII", self.receive(20))
            assert (magic, about) == (0x3E889045565A9, option)
            found.append((kind, self.receive(size)))
        return found

    def go(self, name: str = BLOCK, option: int = GO) -> list[tuple[int, bytes]]:
        """Choose the export."""
        found = self.option(option, struct.pack(">I", len(name)) + name.encode() + b"\0\0")
        for kind, data in found:
            if kind == ABOUT and data[:2] == b"\0\0":
                (self.size,) = struct.unpack(">Q", data[2:10])
        return found

    def begin(self, name: str = BLOCK) -> Self:
        """Greet, and choose the export."""
        self.hello()
        assert self.go(name)[-1] == (ACK, b"")
        return self

    def send(self, kind: int, offset: int = 0, size: int = 0, data: bytes = b"", flags: int = 0) -> int:
        """Send a command; its cookie."""
        self._cookie += 1
        head = struct.pack(">IHHQQI", 0x25609513, flags, kind, self._cookie, offset, size or len(data))
        self.link.sendall(head + data)
        return self._cookie

    def answer(self, cookie: int, size: int = 0) -> bytes:
        """Take an answer, with so many bytes if it is good; raises NbdError."""
        magic, error, found = struct.unpack(">IIQ", self.receive(16))
        assert (magic, found) == (0x67446698, cookie)
        if error:
            raise NbdError(error)
        return self.receive(size)

    def read(self, offset: int, size: int) -> bytes:
        """Read; raises NbdError, as all of these do."""
        return self.answer(self.send(READ, offset, size), size)

    def write(self, offset: int, data: bytes, flags: int = 0) -> None:
        """Write."""
        self.answer(self.send(WRITE, offset, data=data, flags=flags))

    def change(self, kind: int, offset: int = 0, size: int = 0, flags: int = 0) -> None:
        """Flush, trim, write zeros."""
        self.answer(self.send(kind, offset, size, flags=flags))

    @property
    def hung_up(self) -> bool:
        """Whether the server has hung up, which is waited for."""
        try:
            while self.link.recv(65536):
                pass
        except ConnectionError:
            pass
        return True


def connect(path: Path, name: str = BLOCK) -> Nbd:
    """Connect and begin, as soon as somebody listens there: what QEMU does with a reconnect delay."""
    found: list[Nbd] = []

    def attempt() -> bool:
        try:
            found.append(Nbd(path).begin(name))
        except OSError:
            return False
        return True

    assert wait_until(attempt, DEADLINE_SECONDS, 0.01), f"nobody serves {path}"
    return found[0]
