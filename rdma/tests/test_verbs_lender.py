"""The key channel of a verbs lender over real sockets, without a device: it waits briefly for a ticket."""

import socket
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pondstack_rdma.keyring import Keyring
from pondstack_rdma.model import Ticket
from pondstack_rdma.tcp import messages
from pondstack_rdma.verbs import lender as verbs_lender
from pondstack_rdma.verbs.lender import VerbsLender

from .harness import DEADLINE_SECONDS

LENGTHS = struct.Struct("!II")
QPN = 7


class Connections:
    """Stands for the listener of librdmacm: host1 has the queue pair QPN."""

    def __init__(self) -> None:
        self.ended: list[int] = []

    def borrower(self, qpn: int) -> str | None:
        return "host1" if qpn == QPN else None

    def end(self, qpn: int) -> None:
        self.ended.append(qpn)


@pytest.fixture
def lender(monkeypatch: pytest.MonkeyPatch) -> VerbsLender:
    """A lender without a device, whose deadlines are short."""
    monkeypatch.setattr(verbs_lender, "_ANSWER_SECONDS", 0.2)
    made: Any = VerbsLender.__new__(VerbsLender)
    made._listener = Connections()
    made._check_borrower = lambda *_: None
    made._left = lambda _link: None
    made._locate = lambda _borrower, header: {"asked": header}
    return made


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: the borrower's, the lender's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname(), DEADLINE_SECONDS)
        theirs, _ = listener.accept()
        with ours, theirs:
            yield ours, theirs


def show(link: socket.socket, **more: Any) -> None:
    """Show a ticket of host1."""
    ticket = Ticket("verbs", "127.0.0.1:1", "host1", Keyring().admit("host1"))
    messages.send(link, {"ticket": ticket.to_dict(), "pair": QPN, **more}, b"")


def test_who_is_silent_is_hung_up_on(lender: VerbsLender, pair: tuple[socket.socket, socket.socket]) -> None:
    lender._serve(pair[1])  # returns


def test_who_trickles_is_hung_up_on(lender: VerbsLender, pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(LENGTHS.pack(100, 0) + b"{")
    lender._serve(pair[1])


def test_nobody_announces_more_than_a_ticket(
    lender: VerbsLender, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs_lender, "_ANSWER_SECONDS", 3600.0)
    pair[0].sendall(LENGTHS.pack(messages.MAX_TICKET_BYTES + 1, 0))
    lender._serve(pair[1])  # at once


def test_nothing_is_left_of_who_is_dismissed(lender: VerbsLender) -> None:
    """No queue pair that reaches the protection domain, and then no domain; what is in it goes first."""
    order: list[str] = []
    lent: Any = lender
    lent._links = {}
    lent._listener.end_all = lambda borrower: order.append(f"queue pairs of {borrower}")
    own = [SimpleNamespace(close=lambda what=what: order.append(what)) for what in ("domain", "flush page")]
    lent._pds = {"host1": SimpleNamespace(pd=own[0], flush_mr=own[1]), "host2": None}
    lent._hang_up("host1")
    lent._forget("host1")
    lent._forget("host1")
    assert order == ["queue pairs of host1", "flush page", "domain"]
    assert lent._pds == {"host2": None}


def test_who_has_shown_a_ticket_may_be_silent(
    lender: VerbsLender, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And asks for one key at a time: a larger request ends the channel."""
    waits: list[float | None] = []
    received = messages.receive

    def receive(link: socket.socket, ends: float | None = None, *bounds: int) -> Any:
        waits.append(ends)
        return received(link, ends, *bounds)

    monkeypatch.setattr(messages, "receive", receive)
    show(pair[0])
    messages.send(pair[0], {"key": "a"}, b"")
    pair[0].sendall(LENGTHS.pack(5000, 0))
    lender._serve(pair[1])
    assert [ends is None for ends in waits] == [False, True, True]
    connections: Any = lender._listener
    assert connections.ended == [QPN]
    assert received(pair[0])[0] == {}
    assert received(pair[0])[0] == {"asked": {"key": "a"}}
