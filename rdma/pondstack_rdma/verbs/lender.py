"""Lender over verbs: lets borrowers in and gives them addresses; its device does the rest, and refuses by itself.

Connections are librdmacm's (listener.py). A borrower shows its keys over TCP; whichever of the two ends ends both.

Each borrower has a protection domain, each key a memory region in the domain of its borrower: the device takes a key
from that borrower's connections only, within that region only, and not after it was revoked.
"""

import socket
import time
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.acceptor import Server
from pondstack_rdma.errors import NoDevice, RegistrationFailed, WrongBorrower
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.lending import PAGE_BYTES, SoftwareLender
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.tcp import messages
from pondstack_rdma.verbs import pyverbs_binding
from pondstack_rdma.verbs.handshake import Welcome, proof_in
from pondstack_rdma.verbs.listener import AdmittedBorrower, Listener
from pondstack_rdma.verbs.memory import PinnedMemory
from pondstack_rdma.verbs.path import Path
from pondstack_rdma.verbs.port import find_port
from pondstack_rdma.verbs.pyverbs_binding import Access
from pondstack_rdma.verbs.qp import QueuePair

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
    """Listens for borrowers on free ports, of librdmacm and of TCP, of the address that its device's GID stands for."""

    def __init__(self, host: str, name: str, keyring: Keyring) -> None:
        super().__init__(DRIVER, name, keyring)
        self._port = find_port(host)
        try:
            self._page = PinnedMemory(PAGE_BYTES)
            self._queue = pyverbs_binding.load().CQ(self._port.context, 1)  # nothing completes here
            self._domains: dict[str, _Domain] = {}
            self._registered: dict[int, Any] = {}
            control = _listen(self._port.address)
        except BaseException:
            self._port.close()
            raise
        self._control_port = int(control.getsockname()[1])
        try:
            self._listener = Listener(self._port.address, self._let_in, self._lock)
        except BaseException:
            control.close()
            self._port.close()
            raise
        self._showing = Server(control, f"{self._port.address}:{self._listener.port}", self._serve)

    @property
    def _server(self) -> Server:
        return self._showing

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
            self._listener.close()
            self._port.close()
            self._page.close()

    def _domain(self, borrower: str) -> _Domain:
        if borrower not in self._domains:
            verbs = pyverbs_binding.load()
            try:
                pd = verbs.PD(self._port.context)
            except verbs.Error as error:
                raise RegistrationFailed(f"no protection domain for {borrower!r}: {error}") from error
            self._domains[borrower] = _Domain(pd, self._page.register(pd, Access.REMOTE_READ))
        return self._domains[borrower]

    def _let_in(self, request: bytes, path: Path) -> AdmittedBorrower:
        """Make a queue pair for whoever asks with a good proof, and connect it at this side."""
        with self._lock:
            self._check_open()
            borrower = self._keyring.borrower_of(proof_in(request))
            domain = self._domain(borrower)
            reads = min(path.reads, self._port.max_reads)
            pair = QueuePair(domain.pd, self._queue)
            try:
                pair.connect(path._replace(reads=reads), Access.REMOTE_READ | Access.REMOTE_WRITE, _ANSWER_SECONDS)
            except BaseException:
                pair.close()
                raise
        welcome = Welcome(self._control_port, self._page.address, domain.beacon.rkey)
        return AdmittedBorrower(borrower, pair, reads, welcome.pack())

    def _serve(self, link: socket.socket) -> None:
        """Tell one borrower where its keys lead, until it hangs up or talks nonsense."""
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        number: int | None = None
        try:
            header, _ = messages.receive(link, max_body_bytes=0)
            borrower, number = self._greet(link, header)
            while number is not None:
                header, _ = messages.receive(link, max_body_bytes=0)
                self._answer(link, self._show(borrower, header))
        except (OSError, ValueError):
            return  # it is gone, or no borrower of ours; its own side tells why
        finally:
            if number is not None:
                self._listener.end(number)

    def _greet(self, link: socket.socket, header: dict[str, Any]) -> tuple[str, int | None]:
        """Return whose link it is, and its queue pair of this side, if it is one's."""
        try:
            ticket = Ticket.from_dict(header.get("ticket"))
            self._check_borrower(ticket.borrower, ticket.secret)
            number = header.get("pair")
            if not isinstance(number, int):
                raise ValueError("a queue pair is a number")
            if self._listener.borrower(number) != ticket.borrower:
                raise WrongBorrower(f"this connection is not borrower {ticket.borrower!r}'s")
        except PondError as error:
            self._answer(link, {"error": wire_errors.to_wire(error)})
            return "", None
        self._answer(link, {})
        return ticket.borrower, number

    def _show(self, borrower: str, header: dict[str, Any]) -> dict[str, Any]:
        """Return where the region of a key is, or why the borrower does not get to know."""
        try:
            key = Key.from_dict(header.get("key"))
            with self._lock:
                memory = self._check(borrower, key)
                return _place(self._registered[key.number], memory)
        except PondError as error:
            return {"error": wire_errors.to_wire(error)}

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
