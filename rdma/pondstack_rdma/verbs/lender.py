"""Lender over verbs: lets borrowers in and gives them addresses; its device does the rest, and refuses by itself.

Each borrower has a protection domain, each key a memory region in the domain of its borrower: the device takes a key
from that borrower's connections only, within that region only, and not after it was revoked.
"""

import socket
import time
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rdma import refusals
from pondstack_rdma.errors import NoDevice, RegistrationFailed
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.lending import PAGE_BYTES, SoftwareLender
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.server import Server
from pondstack_rdma.tcp import messages
from pondstack_rdma.verbs import binding
from pondstack_rdma.verbs.binding import Access
from pondstack_rdma.verbs.endpoint import Endpoint
from pondstack_rdma.verbs.memory import PinnedMemory
from pondstack_rdma.verbs.pair import QueuePair
from pondstack_rdma.verbs.port import find_port

DRIVER = "verbs"
_ANSWER_SECONDS = 10.0
"""So long a borrower that takes no answers keeps a thread."""
_LENT = Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE


@dataclass(frozen=True, slots=True)
class _Domain:
    """What one borrower can reach."""

    pd: Any
    beacon: Any
    """A page that it may read: to see that the device lives, and that what it wrote has arrived."""


class VerbsLender(SoftwareLender[PinnedMemory]):
    """Listens for borrowers on a free TCP port of the address that its device's GID stands for."""

    def __init__(self, host: str, name: str, keyring: Keyring) -> None:
        super().__init__(DRIVER, name, keyring)
        self._port = find_port(host)
        try:
            self._page = PinnedMemory(PAGE_BYTES)
            self._queue = binding.load().CQ(self._port.context, 1)  # nothing completes here
            self._domains: dict[str, _Domain] = {}
            self._registered: dict[int, Any] = {}
            listener = _listen(self._port.address)
        except BaseException:
            self._port.close()
            raise
        self._listening = Server(listener, f"{self._port.address}:{listener.getsockname()[1]}", self._serve)

    @property
    def _server(self) -> Server:
        return self._listening

    def _allocate(self, size_bytes: int) -> PinnedMemory:
        return PinnedMemory(size_bytes)

    def _key_made(self, key: Key) -> None:
        memory = self._check(key.borrower, key)
        self._registered[key.number] = memory.register(self._domain(key.borrower).pd, _LENT)

    def _key_ended(self, key: Key) -> None:
        # Returns when no access that was under way is left. The borrower's device has the answer to all others.
        self._registered.pop(key.number).close()

    def close(self) -> None:
        """End all keys, hang up on everybody, and give the device back."""
        first = not self._closed
        super().close()
        if first:
            self._port.close()
            self._page.close()

    def _domain(self, borrower: str) -> _Domain:
        if borrower not in self._domains:
            verbs = binding.load()
            try:
                pd = verbs.PD(self._port.context)
            except verbs.Error as error:
                raise RegistrationFailed(f"no protection domain for {borrower!r}: {error}") from error
            self._domains[borrower] = _Domain(pd, self._page.register(pd, Access.REMOTE_READ))
        return self._domains[borrower]

    def _serve(self, link: socket.socket) -> None:
        """Connect one borrower, and tell it where its keys lead, until it hangs up or talks nonsense."""
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        pair: QueuePair | None = None
        try:
            header, _ = messages.receive(link, max_body_bytes=0)
            borrower, pair = self._greet(link, header)
            while pair is not None:
                header, _ = messages.receive(link, max_body_bytes=0)
                self._answer(link, self._show(borrower, header))
        except (OSError, ValueError):
            return  # it is gone, or no borrower of ours; its own side tells why
        finally:
            if pair is not None:
                with self._lock:
                    pair.close()

    def _greet(self, link: socket.socket, header: dict[str, Any]) -> tuple[str, QueuePair | None]:
        try:
            ticket = Ticket.from_dict(header.get("ticket"))
            peer = Endpoint.from_dict(header.get("endpoint"))
            with self._lock:
                self._check_borrower(ticket.borrower, ticket.secret)
                domain = self._domain(ticket.borrower)
                pair = QueuePair(self._port, domain.pd, self._queue)
        except PondError as error:
            self._answer(link, {"error": refusals.to_wire(error)})
            return "", None
        try:
            pair.connect(peer, Access.REMOTE_READ | Access.REMOTE_WRITE, _ANSWER_SECONDS)
            self._answer(link, {"endpoint": pair.here.to_dict(), **_place(domain.beacon, self._page)})
        except BaseException:
            pair.close()
            raise
        return ticket.borrower, pair

    def _show(self, borrower: str, header: dict[str, Any]) -> dict[str, Any]:
        """Return where the region of a key is, or why the borrower does not get to know."""
        try:
            key = Key.from_dict(header.get("key"))
            with self._lock:
                memory = self._check(borrower, key)
                return _place(self._registered[key.number], memory)
        except PondError as error:
            return {"error": refusals.to_wire(error)}

    def _answer(self, link: socket.socket, answer: dict[str, Any]) -> None:
        messages.send(link, answer, b"", time.monotonic() + _ANSWER_SECONDS)


def _place(registered: Any, memory: PinnedMemory) -> dict[str, int]:
    return {"address": memory.address, "rkey": registered.rkey}


def _listen(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, 0), family=family)
    except OSError as error:
        raise NoDevice(f"the RDMA device's address {address} is not this host's: {error}; see `ip address`") from error
