"""One lender as its borrower sees it: when it is tried again, and that nobody waits for a dead link to close."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from pondstack_rdma.errors import KeyRevoked, OutOfBounds, TransportGone
from pondstack_rdma.model import Key, Read, Write
from pondstack_rdma.shm import ShmTransport
from pondstack_rdma.store.peer import Peer, PeerState, Retry
from rdma.tests.harness import PAGE, SIZE
from rdma.tests.rack import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def dead(clock: Clock) -> tuple[Peer, list[float]]:
    """A lender that never answers; when it was tried."""
    tried: list[float] = []

    def connect():
        tried.append(clock.now)
        raise TransportGone("nobody")

    return Peer("lender1", connect, clock, random.Random(1), Retry(1.0, 8.0)), tried


def test_it_is_tried_ever_more_seldom(clock: Clock) -> None:
    peer, tried = dead(clock)
    begin = clock.now
    while clock.now < begin + 100:
        assert not peer.mend()
        due = peer.due_seconds()
        assert due
        clock.now += due
    pauses = [late - early for early, late in pairwise(tried)]
    for index, pause in enumerate(pauses):
        assert min(2.0**index, 8.0) / 2 <= pause <= min(2.0**index, 8.0)
    assert peer.down_seconds() >= 100
    assert peer.run([Write(Key(1, "host1", SIZE, b""), 0, b"")])[0] == 0


def test_a_new_ticket_is_tried_at_once(clock: Clock) -> None:
    peer, tried = dead(clock)
    for _ in range(5):
        clock.now += 10
        peer.mend()
    peer.replace(peer._connect)
    assert peer.due_seconds() == 0
    peer.mend()
    assert len(tried) == 6


def test_a_refusal_keeps_the_link_and_a_break_does_not(tmp_path: Path, clock: Clock) -> None:
    transport = ShmTransport(tmp_path)
    with transport.lend("lender1") as lender:
        key, other = (lender.export(lender.register(SIZE), "host1") for _ in range(2))
        ticket = lender.admit("host1")
        peer = Peer("lender1", lambda: transport.connect(ticket, 5.0), clock, random.Random(1), Retry())
        assert peer.max_batch == 1
        assert isinstance(peer.open(key), TransportGone)
        assert peer.mend()
        assert peer.max_batch == 1024
        assert peer.open(key) is None
        lender.revoke(other)
        done, error = peer.run([Write(key, 0, b"x"), Write(other, 0, b"x"), Write(key, 8, b"x")])
        assert (done, type(error)) == (1, KeyRevoked)
        done, error = peer.run([Read(key, SIZE, bytearray(PAGE))])
        assert (done, type(error), peer.state) == (0, OutOfBounds, PeerState.UP)
        assert peer.down_seconds() == 0
        peer.forget(other)
    peer.probe()
    assert peer.state is PeerState.DOWN
    assert peer.due_seconds() == 0  # the worn link is to be closed
    assert not peer.mend()
    assert (peer.counts.calls, peer.counts.pages, peer.counts.failures, peer.counts.refusals) == (2, 1, 3, 2)
    peer.probe()
    peer.close()
    peer.close()
