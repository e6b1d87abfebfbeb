"""A lender over verbs: it admits borrowers and gives them addresses and rkeys. Its device serves and refuses accesses.

librdmacm makes the connections (listener.py). A borrower shows its keys over TCP. When one of the two connections ends,
the lender ends the other one.

Each borrower has a protection domain, each key a memory region in the domain of its borrower: the device takes a key
from that borrower's connections only, within that region only, and not after it was revoked.
"""

import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import PondError
from pondstack_rdma import wire_errors
from pondstack_rdma.acceptor import Server
from pondstack_rdma.errors import NoDevice, RegistrationFailed, RevokeFailed, WrongBorrower
from pondstack_rdma.keyring import Keyring
from pondstack_rdma.lending import PAGE_BYTES, SoftwareLender
from pondstack_rdma.model import Key, Ticket
from pondstack_rdma.tcp import messages
from pondstack_rdma.verbs import pyverbs_binding
from pondstack_rdma.verbs.cm_attrs import CmAttrs
from pondstack_rdma.verbs.handshake import Welcome, proof_in
from pondstack_rdma.verbs.listener import AdmittedBorrower, Listener
from pondstack_rdma.verbs.memory import PinnedMemory
from pondstack_rdma.verbs.port import find_port
from pondstack_rdma.verbs.pyverbs_binding import Access
from pondstack_rdma.verbs.qp import QueuePair

LOG = logging.getLogger(__name__)

DRIVER = "verbs"
_ANSWER_SECONDS = 10.0
"""How long a borrower that does not show its ticket, or does not read its answer, occupies a thread."""
_KEY_BYTES = 4096
"""Of the header of a request on the key channel: it names one key."""
_LENT = Access.LOCAL_WRITE | Access.REMOTE_READ | Access.REMOTE_WRITE


@dataclass(frozen=True, slots=True)
class _BorrowerPd:
    """The protection domain of one borrower."""

    pd: Any
    flush_mr: Any
    """The flush page in this domain: a read of it returns after the borrower's earlier writes have arrived."""


class VerbsLender(SoftwareLender[PinnedMemory]):
    """Listens for borrowers on a free port of librdmacm and on one of TCP, at the address of its device's GID."""

    def __init__(self, host: str, name: str, keyring: Keyring) -> None:
        super().__init__(DRIVER, name, keyring)
        self._port = find_port(host)
        try:
            self._flush_page = PinnedMemory(PAGE_BYTES)
            self._cq = pyverbs_binding.load().CQ(self._port.context, 1)  # nothing completes here
            self._pds: dict[str, _BorrowerPd] = {}
            self._mrs: dict[int, Any] = {}
            control = _listen(self._port.address)
        except BaseException:
            self._port.close()
            raise
        self._control_port = int(control.getsockname()[1])
        try:
            self._listener = Listener(self._port.address, self._admit, self._lock)
        except BaseException:
            control.close()
            self._port.close()
            raise
        self._key_server = Server(control, f"{self._port.address}:{self._listener.port}", self._serve)

    @property
    def _server(self) -> Server:
        return self._key_server

    def _allocate(self, size_bytes: int) -> PinnedMemory:
        return PinnedMemory(size_bytes)

    def _location(self, key: Key, memory: PinnedMemory) -> Mapping[str, int]:
        return {"address": memory.address, "rkey": self._mrs[key.number].rkey}

    def _key_made(self, key: Key) -> None:
        memory = self._check(key.borrower, key)
        self._mrs[key.number] = memory.register(self._borrower_pd(key.borrower).pd, _LENT)

    def _key_ended(self, key: Key) -> None:
        # Returns when no access is under way any more. All others have been answered.
        try:
            self._mrs[key.number].close()
        except pyverbs_binding.load().Error as error:
            raise RevokeFailed(
                f"the RDMA device did not end key {key.number} of borrower {key.borrower!r} ({error}); look at the "
                "kernel's log and `rdma resource`"
            ) from error
        del self._mrs[key.number]

    def _hang_up(self, borrower: str) -> None:
        super()._hang_up(borrower)
        self._listener.end_all(borrower)  # without its queue pairs nothing reaches its protection domain

    def _forget(self, borrower: str) -> None:
        borrower_pd = self._pds.pop(borrower, None)
        if borrower_pd is None:
            return
        try:
            borrower_pd.flush_mr.close()
            borrower_pd.pd.close()
        except pyverbs_binding.load().Error as error:
            LOG.warning("A protection domain of a borrower that is gone stays until this process ends: %s", error)

    def close(self) -> None:
        """Revoke all keys, disconnect all borrowers, and close the device."""
        first = not self._closed
        super().close()
        if first:
            self._listener.close()
            self._port.close()
            self._flush_page.close()

    def _borrower_pd(self, borrower: str) -> _BorrowerPd:
        if borrower not in self._pds:
            verbs = pyverbs_binding.load()
            try:
                pd = verbs.PD(self._port.context)
            except verbs.Error as error:
                raise RegistrationFailed(f"no protection domain for {borrower!r}: {error}") from error
            self._pds[borrower] = _BorrowerPd(pd, self._flush_page.register(pd, Access.REMOTE_READ))
        return self._pds[borrower]

    def _admit(self, request: bytes, attrs: CmAttrs) -> AdmittedBorrower:
        """Check the proof in a request, and return the borrower with a queue pair that is connected at this side."""
        with self._lock:
            self._check_open()
            borrower = self._keyring.borrower_of(proof_in(request))
            borrower_pd = self._borrower_pd(borrower)
            max_rd_atomic = min(attrs.max_rd_atomic, self._port.max_rd_atomic)
            qp = QueuePair(borrower_pd.pd, self._cq)
            try:
                qp.connect(
                    attrs._replace(max_rd_atomic=max_rd_atomic),
                    Access.REMOTE_READ | Access.REMOTE_WRITE,
                    _ANSWER_SECONDS,
                )
            except BaseException:
                qp.close()
                raise
        welcome = Welcome(self._control_port, self._flush_page.address, borrower_pd.flush_mr.rkey)
        return AdmittedBorrower(borrower, qp, max_rd_atomic, welcome.pack())

    def _serve(self, link: socket.socket) -> None:
        """Answer the requests of one borrower's key channel, until it hangs up or sends an invalid message."""
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        qpn: int | None = None
        try:
            ends = time.monotonic() + _ANSWER_SECONDS
            header, _ = messages.receive(link, ends, 0, messages.MAX_TICKET_BYTES)
            borrower, qpn = self._authenticate(link, header)
            while qpn is not None:
                header, _ = messages.receive(link, None, 0, _KEY_BYTES)
                self._answer(link, self._locate(borrower, header))
        except (OSError, ValueError):
            return  # the borrower is gone, or is not ours; its own side reports why
        finally:
            self._left(link)
            if qpn is not None:
                self._listener.end(qpn)

    def _authenticate(self, link: socket.socket, header: dict[str, Any]) -> tuple[str, int | None]:
        """Return the borrower of a key channel, and the QPN of its queue pair at this side; None if it is refused."""
        try:
            ticket = Ticket.from_dict(header.get("ticket"))
            self._check_borrower(ticket.borrower, ticket.secret, link)
            qpn = header.get("pair")  # the name in the protocol
            if not isinstance(qpn, int):
                raise ValueError("a queue pair is a number")
            if self._listener.borrower(qpn) != ticket.borrower:
                raise WrongBorrower(f"this connection is not borrower {ticket.borrower!r}'s")
        except PondError as error:
            self._answer(link, {"error": wire_errors.to_wire(error)})
            return "", None
        self._answer(link, {})
        return ticket.borrower, qpn

    def _locate(self, borrower: str, header: dict[str, Any]) -> dict[str, Any]:
        """Return the address and the rkey of a key's region, or the refusal."""
        try:
            key = Key.from_dict(header.get("key"))
            with self._lock:
                memory = self._check(borrower, key)
                return dict(self._location(key, memory))
        except PondError as error:
            return {"error": wire_errors.to_wire(error)}

    def _answer(self, link: socket.socket, answer: dict[str, Any]) -> None:
        messages.send(link, answer, b"", time.monotonic() + _ANSWER_SECONDS)


def _listen(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, 0), family=family)
    except OSError as error:
        raise NoDevice(f"the RDMA device's address {address} is not this host's: {error}; see `ip address`") from error
