"""Where the QEMU of a guest that comes from another host tells this host's agent of itself, before it has its memory.

An abstract socket, which the agent listens on while it expects the guest, and no longer: nobody has to share a folder.
`pondstack-qemu` connects, and QEMU gets the connection as a monitor (QMP). Both sides look who the other one is, since
any process of the host may take an abstract name. Standard library only, because the head of a guest reads it.
"""

import os
import socket
import struct
import zlib

_CREDENTIALS = struct.Struct("3i")
MONITOR = "pondstack"
"""The name of QEMU's character device."""


def address(host: str, guest: str) -> bytes:
    """Return the socket's address. `host`: the agent's name of it, as several hosts of a rack may share a machine."""
    return f"\0pondstack-arrival-{zlib.crc32(host.encode()):08x}-{guest}".encode()


def listen(host: str, guest: str) -> socket.socket:
    """Expect a guest; raises OSError where somebody does already."""
    listener = _socket()
    try:
        listener.bind(address(host, guest))
        listener.listen(1)
    except BaseException:
        listener.close()
        raise
    return listener


def knock(host: str, guest: str, agent: int) -> socket.socket | None:
    """Return a connection to the agent, a process of user `agent` or root, that expects a guest; None: none does."""
    link = _socket()
    try:
        link.connect(address(host, guest))
        if peer(link)[1] in (agent, 0):
            return link
    except OSError:
        pass
    link.close()
    return None


def peer(link: socket.socket) -> tuple[int, int]:
    """Return process and user at the other end; of who listens, as it began to."""
    pid, user, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, user


def words(link: socket.socket) -> list[str]:
    """Return words for QEMU, which is to inherit the connection and have it as a monitor."""
    descriptor = link.detach()
    os.set_inheritable(descriptor, True)
    return ["-chardev", f"socket,id={MONITOR},fd={descriptor}", "-mon", f"chardev={MONITOR},mode=control"]


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
