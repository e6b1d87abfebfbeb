"""Lender over TCP: a thread per borrower copies for it. Two-sided, hence for debugging only."""

import socket
import time
from typing import Any

from pondstack.domain.errors import BadRequest, PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.acceptor import Server
from pondstack_rdma.bounds import check_bounds
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.lending import SoftwareLender
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.tcp import messages
from pondstack_rdma.tcp.memory import PrivateMemory

DRIVER = "tcp"
_ANSWER_SECONDS = 10.0
"""So long a borrower that takes no answers keeps a thread."""


class TcpLender(SoftwareLender[PrivateMemory]):
    """Listens on a free port of `host`. Nothing on the wire is encrypted: tickets and keys neither."""

    def __init__(self, host: str, name: str, keyring: Keyring) -> None:
        super().__init__(DRIVER, name, keyring)
        listener = socket.create_server((host, 0))
        self._listening = Server(listener, f"{host}:{listener.getsockname()[1]}", self._serve)

    @property
    def _server(self) -> Server:
        return self._listening

    def _allocate(self, size_bytes: int) -> PrivateMemory:
        return PrivateMemory(size_bytes)

    def _serve(self, link: socket.socket) -> None:
        """Work for one borrower until it hangs up or talks nonsense."""
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            borrower = self._greet(link)
            while borrower:
                header, body = messages.receive(link)
                answer, read = self._carry_out(borrower, header, body)
                messages.send(link, answer, read, time.monotonic() + _ANSWER_SECONDS)
        except (OSError, ValueError):
            return  # it is gone, or no borrower of ours; its own side tells why
        finally:
            self._left(link)

    def _greet(self, link: socket.socket) -> str:
        ends = time.monotonic() + _ANSWER_SECONDS
        header, _ = messages.receive(link, ends, 0, messages.MAX_TICKET_BYTES)
        try:
            ticket = Ticket.from_dict(header)
            self._check_borrower(ticket.borrower, ticket.secret, link)
        except PondError as error:
            messages.send(link, {"error": wire_errors.to_wire(error)}, b"", ends)
            return ""
        messages.send(link, {}, b"", ends)
        return ticket.borrower

    def _carry_out(self, borrower: str, header: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Do a batch in order, and tell how far it came; with no operations it is a sign of life."""
        answer: dict[str, Any] = {"done": 0}
        read: list[bytes] = []
        rest = memoryview(body)
        room = messages.MAX_BODY_BYTES
        try:
            for item in header["operations"]:
                length = _number(item["length"])
                room -= length
                if length < 0 or room < 0:
                    raise BadRequest("a batch of these lengths does not fit into a message")
                if item["write"] and length > len(rest):
                    raise BadRequest("a batch announces more bytes than it has")
                data = rest[:length] if item["write"] else None
                read.append(self._copy(borrower, item, length, data))
                rest = rest[length:] if item["write"] else rest
                answer["done"] += 1
        except PondError as error:
            answer["error"] = wire_errors.to_wire(error)
        except (KeyError, TypeError) as error:
            answer["error"] = wire_errors.to_wire(BadRequest(f"this is no batch: {error!r}"))
        return answer, b"".join(read)

    def _copy(self, borrower: str, item: dict[str, Any], length: int, data: memoryview | None) -> bytes:
        key, offset = Key.from_dict(item["key"]), _number(item["offset"])
        # Under the lock from the check to the last byte: `revoke` waits for what is under way.
        with self._lock:
            view = self._check(borrower, key).view
            check_bounds(offset, length, view.nbytes)
            if data is None:
                return bytes(view[offset : offset + length])
            view[offset : offset + length] = data
            return b""


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value
