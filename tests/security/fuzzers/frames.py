"""What goes over each socket, right as far as an attacker can have it, and spoilt: seeded."""

import json
import socket
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from pondstack_agent.helper.unix_socket import connect
from pondstack_agent.lending.program import LENDER
from pondstack_rdma.tcp.messages import MAX_TICKET_BYTES
from tests.security.fuzzers.mutations import changed, spoilt
from tests.security.fuzzers.served import MALLORY, PAGE, ServedLender

Frames = list[bytes]
CONNECT_SECONDS = 10.0


def message(header: Any, body: bytes = b"") -> bytes:
    """Return a message of the TCP driver and of the helpers."""
    text = json.dumps(header).encode()
    return struct.pack("!II", len(text), len(body)) + text + body


def control(request: Any) -> bytes:
    """Return a request to a helper."""
    return message({}, json.dumps(request).encode())


def lying(dice: Random, frame: bytes) -> bytes:
    """Return a message whose lengths are others."""
    header, body = struct.unpack("!II", frame[:8])
    lengths = [dice.choice((0, 1, header, MAX_TICKET_BYTES + 1, 2**20 + 1, 2**31, 2**32 - 1)), body]
    lengths[1] = dice.choice((body, 0, 1, 64 * 2**20 + 1, 2**32 - 1))
    return struct.pack("!II", *lengths) + frame[8:]


class Door:
    """One socket of a process. `honest` draws frames that would be answered."""

    def __init__(self, name: str, opened: Callable[[], socket.socket], honest: Callable[[Random], Frames]) -> None:
        self.name, self.opened, self._honest = name, opened, honest

    def frames(self, dice: Random) -> Frames:
        """Return frames of which one is spoilt, or that are nothing but noise."""
        if dice.random() < 0.15:
            return [dice.randbytes(dice.choice((1, 7, 28, 500, 70_000)))]
        frames = self._honest(dice)
        at = dice.randrange(len(frames))
        frames[at] = lying(dice, frames[at]) if self._has_lengths(frames[at], dice) else spoilt(dice, frames[at])
        return frames

    def _has_lengths(self, frame: bytes, dice: Random) -> bool:
        return not self.name.endswith("shm") and len(frame) > 8 and dice.random() < 0.3


def doors_of_lender(served: ServedLender) -> list[Door]:
    """Return the sockets of a lender: its agent's, and its borrowers'."""
    door = _tcp if served.ticket["driver"] == "tcp" else _shm
    return [
        Door("lender control", lambda: connect(served.folder, LENDER.socket, CONNECT_SECONDS), _lender_control(served)),
        door(served),
    ]


def _tcp(served: ServedLender) -> Door:
    host, _, port = served.ticket["address"].rpartition(":")

    def draw(dice: Random) -> Frames:
        ticket, key = served.ticket, served.key
        if dice.random() < 0.2:
            ticket = changed(dice, ticket)
        sizes = [dice.choice((0, 1, 100, PAGE)) for _ in range(dice.randrange(1, 4))]
        operations = [
            {"write": dice.random() < 0.5, "key": key, "offset": dice.randrange(PAGE), "length": size} for size in sizes
        ]
        data = b"m" * sum(item["length"] for item in operations if item["write"])
        batch: Any = {"operations": operations}
        if dice.random() < 0.6:
            batch = changed(dice, batch)
        return [message(ticket), message(batch, data), message({"operations": []})]

    return Door("tcp", lambda: socket.create_connection((host, int(port)), CONNECT_SECONDS), draw)


def _shm(served: ServedLender) -> Door:
    def opened() -> socket.socket:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        link.settimeout(CONNECT_SECONDS)
        link.connect(served.ticket["address"])
        return link

    def draw(dice: Random) -> Frames:
        ticket: Any = served.ticket
        asked: Any = {"id": dice.randrange(9), "key": served.key}
        if dice.random() < 0.2:
            ticket = changed(dice, ticket)
        if dice.random() < 0.6:
            asked = changed(dice, asked)
        return [json.dumps(ticket).encode(), json.dumps(asked).encode()]

    return Door("shm", opened, draw)


def _lender_control(served: ServedLender) -> Callable[[Random], Frames]:
    def draw(dice: Random) -> Frames:
        of: Any = {"incarnation": served.incarnation} if dice.random() < 0.8 else {}
        requests: tuple[Any, ...] = (
            {"verb": "hold"},
            {"verb": "become", "kind": "zombie", **of},
            {"verb": "export", "indexes": [1], "borrower": MALLORY, "generations": {"1": 1}, **of},
            {"verb": "withdraw", "indexes": [0, 1], **of},
            {"verb": "end", **of},
        )
        request = dice.choice(requests)
        return [control(changed(dice, request) if dice.random() < 0.7 else request)]

    return draw
