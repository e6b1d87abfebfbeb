"""The listening side: bounded, and gone when closed."""

import socket
import threading
from collections.abc import Callable

import pytest

from pondstack_rack.wait import wait_until
from pondstack_rdma.acceptor import Server

from .harness import DEADLINE_SECONDS, open_descriptors


def start(serve: Callable[[socket.socket], None], max_links: int = 2) -> Server:
    """Start a server on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    return Server(listener, f"127.0.0.1:{listener.getsockname()[1]}", serve, max_links)


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
