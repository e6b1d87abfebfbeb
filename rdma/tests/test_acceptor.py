"""The listening side: bounded, and gone when closed."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until
from pondstack_rdma.acceptor import Server

from .harness import DEADLINE_SECONDS, open_descriptors


def start(serve: Callable[[socket.socket], None], max_links: int = 2, per_address: int = 2) -> Server:
    """Start a server on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    return Server(listener, f"127.0.0.1:{listener.getsockname()[1]}", serve, max_links, per_address)


def call(server: Server) -> socket.socket:
    """Connect to it."""
    host, port = server.address.split(":")
    return socket.create_connection((host, int(port)), DEADLINE_SECONDS)


def echo(link: socket.socket) -> None:
    """Send back what comes until it hangs up."""
    while data := link.recv(100):
        link.sendall(data)


def hears(link: socket.socket) -> bool:
    """Tell whether the other side answers."""
    try:
        link.sendall(b"x")
        return link.recv(1) == b"x"
    except ConnectionError:
        return False


def test_who_comes_too_late_is_hung_up_on_until_somebody_leaves() -> None:
    server = start(echo)
    first, second, third = call(server), call(server), call(server)
    assert hears(first)
    assert hears(second)
    assert not hears(third)
    first.close()
    assert wait_until(lambda: answered(server), DEADLINE_SECONDS)
    for link in (second, third):
        link.close()
    server.close()


def answered(server: Server) -> bool:
    """Tell whether a new caller is served."""
    with call(server) as link:
        return hears(link)


def test_a_close_hangs_up_and_leaves_nothing() -> None:
    # Threads of an earlier test may still be ending: what counts is that none is new.
    before, threads = open_descriptors(), set(threading.enumerate())
    server = start(echo)
    with call(server) as link:
        assert hears(link)
        for _ in range(2):
            server.close()
        assert not hears(link)
    with pytest.raises(OSError):
        call(server)
    assert wait_until(lambda: open_descriptors() <= before, DEADLINE_SECONDS)
    assert set(threading.enumerate()) <= threads


def test_a_close_while_nobody_is_there() -> None:
    start(echo).close()


def test_one_address_does_not_keep_others_out() -> None:
    server = start(echo, max_links=4, per_address=2)
    mine = [call(server) for _ in range(3)]
    assert [hears(link) for link in mine] == [True, True, False]
    host, port = server.address.split(":")
    other = socket.create_connection((host, int(port)), DEADLINE_SECONDS, source_address=("127.0.0.2", 0))
    assert hears(other)
    mine[0].close()
    assert wait_until(lambda: answered(server), DEADLINE_SECONDS)
    for link in (*mine, other):
        link.close()
    assert wait_until(lambda: not server._addresses, DEADLINE_SECONDS)
    server.close()


def test_unix_sockets_have_no_addresses(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    server = Server(listener, str(tmp_path / "s"), echo, 3, 1)
    links = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for link in links:
        link.connect(str(tmp_path / "s"))
    assert all(hears(link) for link in links)
    for link in links:
        link.close()
    server.close()
