"""Messages of the TCP driver: two lengths, a JSON object, then plain bytes."""

import json
import socket
import struct
import time
from typing import Any

MAX_HEADER_BYTES = 2**20
MAX_BODY_BYTES = 64 * 2**20
MAX_TICKET_BYTES = 4096
"""Of the header of the first message: nobody may make a lender keep more before the ticket was checked."""
_LENGTHS = struct.Struct("!II")


def send(link: socket.socket, header: dict[str, Any], body: bytes, ends: float | None = None) -> None:
    """Send one message by the monotonic time `ends`; raises OSError."""
    text = json.dumps(header).encode()
    link.settimeout(_left(ends))  # of sendall that is for the whole of it
    link.sendall(b"".join((_LENGTHS.pack(len(text), len(body)), text, body)))


def receive(
    link: socket.socket,
    ends: float | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    max_header_bytes: int = MAX_HEADER_BYTES,
) -> tuple[dict[str, Any], bytes]:
    """Receive one message by the monotonic time `ends`; raises OSError, ValueError when it is none."""
    header_bytes, body_bytes = _LENGTHS.unpack(_exactly(link, _LENGTHS.size, ends))
    if header_bytes > max_header_bytes or body_bytes > max_body_bytes:
        raise ValueError(f"a message of {header_bytes} and {body_bytes} bytes is too large")
    try:
        header = json.loads(_exactly(link, header_bytes, ends))
    except RecursionError as error:
        raise ValueError("a message of brackets only") from error
    if not isinstance(header, dict):
        raise ValueError("a message starts with a JSON object")
    return header, bytes(_exactly(link, body_bytes, ends))


def _exactly(link: socket.socket, size: int, ends: float | None) -> bytearray:
    data = bytearray(size)
    with memoryview(data) as view:
        got = 0
        while got < size:
            link.settimeout(_left(ends))
            more = link.recv_into(view[got:])
            if not more:
                raise ConnectionResetError("it hung up")
            got += more
    return data


def _left(ends: float | None) -> float | None:
    if ends is None:
        return None
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
