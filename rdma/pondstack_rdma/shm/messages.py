"""Messages between a lender and a borrower of one machine: one JSON object each, with descriptors beside it.

The socket keeps message boundaries (SOCK_SEQPACKET), so that half a message is never seen, even after a time-out.
"""

import json
import os
import socket
from typing import Any

MAX_BYTES = 4096
MAX_FDS = 2


def send(link: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message; raises OSError."""
    socket.send_fds(link, [json.dumps(message).encode()], list(fds), socket.MSG_NOSIGNAL)


def receive(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive one message, whose descriptors the caller has to close. Raises OSError; ValueError when it is none."""
    # recv_fds of Python 3.11 would let the descriptors through exec.
    data, fds, flags, _ = socket.recv_fds(link, MAX_BYTES, MAX_FDS, socket.MSG_CMSG_CLOEXEC)
    try:
        if not data:
            raise ConnectionResetError("it hung up")
        message = _parse(data)
        if not isinstance(message, dict) or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise ValueError(f"{data[:80]!r} is no message")
    except BaseException:
        close_all(fds)
        raise
    return message, list(fds)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("a message of brackets only") from error


def close_all(fds: list[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)
