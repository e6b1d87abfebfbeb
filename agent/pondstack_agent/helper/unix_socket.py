"""Unix sockets in a folder, for one user and root: an address has 107 bytes at most, a folder's name may have more."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")


def listen(folder: Path, name: str) -> socket.socket:
    """Listen in a folder whose lock the caller holds: a socket there is a dead one's. For one user only."""
    (folder / name).unlink(missing_ok=True)
    listener = _socket()
    with _address(folder, name) as path:
        listener.bind(path)
    (folder / name).chmod(0o600)
    listener.listen()
    return listener


def connect(folder: Path, name: str, seconds: float) -> socket.socket:
    """Return a connection, each step of which waits for so long; raises OSError."""
    link = _socket()
    try:
        link.settimeout(seconds)
        with _address(folder, name) as path:
            link.connect(path)
    except BaseException:
        link.close()
        raise
    return link


def trusted(link: socket.socket) -> bool:
    """Return whether the process at the other end is this user's, or root's."""
    data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(data)[1] in (os.geteuid(), 0)


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)


@contextmanager
def _address(folder: Path, name: str) -> Iterator[str]:
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
