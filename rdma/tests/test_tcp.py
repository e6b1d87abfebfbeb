"""What a borrower over TCP can send: nonsense ends its own link, or is refused, and disturbs nobody."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pondstack.domain.errors import BadRequest
from pondstack_rdma.errors import KeyRevoked, TransportGone
from pondstack_rdma.model import Key, Ticket, Write
from pondstack_rdma.tcp import TcpTransport, messages
from pondstack_rdma.tcp.lender import TcpLender
from pondstack_rdma.tcp.memory import PrivateMemory

from .harness import DEADLINE_SECONDS, SIZE


@pytest.fixture
def lender() -> Iterator[TcpLender]:
    with TcpTransport().lend("lender1") as made:
        yield made


@pytest.fixture
def key(lender: TcpLender) -> Key:
    return lender.export(lender.register(SIZE), "host1")


@pytest.fixture
def raw(lender: TcpLender) -> Iterator[socket.socket]:
    """A socket on which host1 has shown its ticket."""
    with dial(lender.admit("host1")) as link:
        messages.send(link, lender.admit("host1").to_dict(), b"")
        assert messages.receive(link) == ({}, b"")
        yield link


def dial(ticket: Ticket) -> socket.socket:
    """Connect, and say nothing."""
    host, _, port = ticket.address.rpartition(":")
    return socket.create_connection((host, int(port)), DEADLINE_SECONDS)


def hung_up(link: socket.socket) -> bool:
    """Tell whether the lender hangs up."""
    link.settimeout(DEADLINE_SECONDS)
    try:
        return link.recv(100) == b""
    except ConnectionError:
        return True


HEADER = struct.Struct("!II")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        HEADER.pack(2, 0) + b"[]",
        HEADER.pack(2, 0) + b"{]",
        HEADER.pack(2**31, 0),
        HEADER.pack(2, 2**31) + b"{}",
        HEADER.pack(5000, 0) + b"[" * 5000,
    ],
)
def test_nonsense_is_hung_up_on(lender: TcpLender, key: Key, raw: socket.socket, nonsense: bytes) -> None:
    raw.sendall(nonsense)
    assert hung_up(raw)
    with dial(lender.admit("host1")) as stranger:
        stranger.sendall(nonsense)
        assert hung_up(stranger)
    with TcpTransport().connect(lender.admit("host1"), DEADLINE_SECONDS) as link:
        link.write(key, 0, b"goes on")


def test_a_stranger_may_not_send_a_body(lender: TcpLender) -> None:
    text = json.dumps(lender.admit("host1").to_dict()).encode()
    with dial(lender.admit("host1")) as stranger:
        stranger.sendall(HEADER.pack(len(text), 1) + text + b"x")
        assert hung_up(stranger)


@pytest.mark.parametrize(
    "change",
    [
        {"length": -1},
        {"length": 2**40},
        {"length": 9, "write": True},
        {"length": True},
        {"length": 1.5},
        {"offset": "0"},
        {"offset": None},
        {"key": {}},
        {"key": {"number": True, "borrower": "host1", "size_bytes": SIZE, "token": ""}},
        {"key": "x"},
    ],
)
def test_a_malformed_operation_is_refused(key: Key, raw: socket.socket, change: Any) -> None:
    right = {"write": False, "key": key.to_dict(), "offset": 0, "length": 4}
    for operation, done in ((right | change, 0), (right, 1)):
        messages.send(raw, {"operations": [operation]}, b"12345678")
        answer, body = messages.receive(raw, time.monotonic() + DEADLINE_SECONDS)
        assert answer["done"] == done
        assert body == bytes(4 * done)
        if not done:
            assert answer["error"]["code"] == BadRequest.code


def test_a_batch_that_does_not_fit_into_a_message_is_refused_here(lender: TcpLender, key: Key) -> None:
    data = bytes(16 * 2**20)
    with TcpTransport().connect(lender.admit("host1"), DEADLINE_SECONDS) as link:
        with pytest.raises(BadRequest, match="at once"):
            link.batch([Write(key, 0, data)] * 5)


@pytest.mark.parametrize("answer", [b"nonsense", HEADER.pack(2, 0) + b"{}", HEADER.pack(12, 0) + b'{"done": []}'])
def test_a_lender_that_talks_nonsense_is_gone(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ticket = Ticket("tcp", f"127.0.0.1:{listener.getsockname()[1]}", "host1", b"secret")
        listener.settimeout(DEADLINE_SECONDS)
        # What it will say is there before it is asked: then no thread is needed.
        client = socket.create_connection
        made: list[socket.socket] = []

        def accepting(*arguments: Any) -> socket.socket:
            link = client(*arguments)
            server, _ = listener.accept()
            server.sendall(HEADER.pack(2, 0) + b"{}" + answer)
            made.append(server)
            return link

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "create_connection", accepting)
            link = TcpTransport().connect(ticket, DEADLINE_SECONDS)
        with pytest.raises(TransportGone):
            link.write(Key(1, "host1", SIZE, b"t"), 0, b"x")
        link.close()
        made[0].close()


@pytest.mark.parametrize("address", ["", "nowhere", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:x"])
def test_an_address_that_is_none_is_gone(address: str) -> None:
    with pytest.raises(TransportGone, match="no lender at"):
        TcpTransport().connect(Ticket("tcp", address, "host1", b"secret"), DEADLINE_SECONDS)


def test_a_revocation_waits_for_what_is_under_way(lender: TcpLender, key: Key, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the check of the key to the last byte: afterwards the memory may be another borrower's."""
    real, waited = lender._check, []
    revoking = threading.Thread(target=lender.revoke, args=(key,))

    def slow(borrower: str, shown: Key) -> PrivateMemory:
        memory = real(borrower, shown)
        revoking.start()
        revoking.join(0.1)
        waited.append(revoking.is_alive())
        return memory

    monkeypatch.setattr(lender, "_check", slow)
    with TcpTransport().connect(lender.admit("host1"), DEADLINE_SECONDS) as link:
        link.write(key, 0, b"in time")
        revoking.join(DEADLINE_SECONDS)
        assert waited == [True]
        assert not revoking.is_alive()
        monkeypatch.undo()
        with pytest.raises(KeyRevoked):
            link.read(key, 0, 7)


def test_a_stranger_may_announce_a_ticket_and_no_more(lender: TcpLender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondstack_rdma.tcp.lender._ANSWER_SECONDS", 3600.0)
    with dial(lender.admit("host1")) as stranger:
        stranger.sendall(HEADER.pack(messages.MAX_TICKET_BYTES + 1, 0))
        assert hung_up(stranger)
