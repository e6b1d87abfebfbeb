"""Requests of the agent to its lender's process: one JSON object each way, over a Unix socket of one user."""

import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pondstack.domain import errors
from pondstack_agent.rpc_errors import to_domain
from pondstack_rdma.tcp import messages

SOCKET = "lender.sock"
MAX_INDEXES = 4096
"""Buffers in one request: keys of so many fit into one message."""

_CREDENTIALS = struct.Struct("3i")


def send(link: socket.socket, message: dict[str, Any], seconds: float) -> None:
    """Send one message; raises OSError."""
    messages.send(link, {}, json.dumps(message).encode(), time.monotonic() + seconds)


def receive(link: socket.socket, seconds: float) -> dict[str, Any]:
    """Receive one message; raises OSError, TimeoutError, ValueError when it is none."""
    _, body = messages.receive(link, time.monotonic() + seconds)
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    return message


def failure(error: errors.PondError) -> dict[str, Any]:
    """Return an error as JSON carries it; one of the transport as what it is of pondstack.domain.errors."""
    return {"error": {"name": type(to_domain(error)).__name__, "text": error.message}}


def failed(answer: dict[str, Any]) -> errors.PondError | None:
    """Return the error that an answer carries, None when it carries none."""
    found = answer.get("error")
    if found is None:
        return None
    kind = getattr(errors, str(found.get("name")), errors.PondError)
    known: errors.PondError = kind(str(found.get("text")))
    return known


def numbered(generations: Mapping[str, int] | None) -> dict[int, int] | None:
    """Return what JSON has made of numbers by index; None when there was nothing."""
    return None if generations is None else {int(index): number for index, number in generations.items()}


@contextmanager
def address(folder: Path, name: str = SOCKET) -> Iterator[str]:
    """Yield a short path of the socket in a folder: an address has 107 bytes at most, a folder's name may have more."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


def user_of(link: socket.socket) -> int:
    """Return the user id of the process at the other end."""
    data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(data)[1]
    return uid
