"""Calls through a server's memory, on every driver: replies, sizes, many at once, deaths, faults."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Transport
from pondstack_rdma.errors import AnswerLost, RequestNotSent, TransportGone
from pondstack_rdma.fault import FaultPlan, FaultTransport
from pondstack_rdma.rpc import call as rpc_call
from pondstack_rdma.rpc import client as rpc_client
from pondstack_rdma.rpc import server as rpc_server
from pondstack_rdma.rpc.client import RpcClient
from pondstack_rdma.rpc.connection import Request
from pondstack_rdma.rpc.layout import Layout
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.server import RpcServer, ServerTerms
from pondstack_rdma.rpc.session import KeyPair
from pondstack_rdma.shm import ShmTransport
from rdma.tests.harness import DEADLINE_SECONDS, HARNESSES, TIMEOUT_SECONDS, Clock, pattern

PATIENCE_SECONDS = 2.0
"""Of calls whose clock stands."""

LAYOUT = Layout(slots=4, slot_bytes=1024, max_message_bytes=256 * 1024)


class Rig:
    """A server whose requests are kept until `answer` says how to reply to them."""

    def __init__(self, transport: Transport, terms: ServerTerms | None = None, layout: Layout = LAYOUT) -> None:
        self.transport = transport
        self.requests: list[Request] = []
        self.answer: Callable[[Request], None] | None = lambda request: request.reply(request.payload[::-1])
        self.server = RpcServer(transport.lend("server"), self._deliver, layout, terms)
        self.clients: list[RpcClient] = []

    def _deliver(self, request: Request) -> None:
        self.requests.append(request)
        if self.answer is not None:
            self.answer(request)

    def client(self, seconds: float = TIMEOUT_SECONDS, transport: Transport | None = None) -> RpcClient:
        pair = KeyPair()
        offer = Offer.from_dict(self.server.offer(pair.public).to_dict())
        session = pair.call(offer.public_key, offer.session)
        link = (transport or self.transport).connect(offer.ticket, seconds)
        try:
            client = RpcClient(link, offer, session)
        except TransportGone:
            link.close()
            raise
        self.clients.append(client)
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.server.close()


@pytest.fixture(params=HARNESSES, ids=lambda make: make.__name__)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(request.param(tmp_path))
    yield made
    made.close()


@pytest.fixture
def shm_rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(ShmTransport(tmp_path), ServerTerms(linger_seconds=0.2))
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clients' clock, which stands."""
    made = Clock(stands=True)
    for module in (rpc_client, rpc_call):
        monkeypatch.setattr(module, "time", made)
    return made


def give_up(rig: Rig, client: RpcClient, clock: Clock, count: int) -> None:
    """Have the server begin so many calls at once, and the client give them up."""
    begun = len(rig.requests)
    with ThreadPoolExecutor(count) as pool:
        calls = [pool.submit(client.call, b"slow", PATIENCE_SECONDS) for _ in range(count)]
        assert wait_until(lambda: len(rig.requests) == begun + count, DEADLINE_SECONDS)
        clock.later += PATIENCE_SECONDS
        for call in calls:
            with pytest.raises(AnswerLost):
                call.result()


@pytest.mark.parametrize("size", [0, 1, 432, 433, 448, 1008, 1009, 1024, 1025, 5000, 20_000])
def test_a_reply_of_any_size_answers_a_request_of_any_size(rig: Rig, size: int) -> None:
    payload = pattern(size, size + 8)[:size]
    assert rig.client().call(payload, DEADLINE_SECONDS) == payload[::-1]


def test_many_callers_of_many_clients_get_their_own_replies(rig: Rig) -> None:
    def calls(number: int) -> None:
        client = clients[number % 3]
        for turn in range(8):
            payload = f"{number} {turn} ".encode() * (turn * 50)
            assert client.call(payload, DEADLINE_SECONDS) == payload[::-1]

    clients = [rig.client() for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(calls, range(12)))
    assert len(rig.requests) == 96


def test_a_slot_is_used_again_while_its_former_call_is_carried_out_still(shm_rig: Rig, clock: Clock) -> None:
    rig = shm_rig
    rig.answer = None
    client = rig.client()
    give_up(rig, client, clock, LAYOUT.slots - 1)
    assert client.usable, "a server that took the request is not at fault"
    slow, rig.answer = list(rig.requests), lambda request: request.reply(b"quick")
    # More calls than slots: each has had its turn.
    assert [client.call(b"x", DEADLINE_SECONDS) for _ in range(8)] == [b"quick"] * 8
    for request in slow:
        request.reply(b"late")  # goes nowhere
    assert [client.call(b"x", DEADLINE_SECONDS) for _ in range(8)] == [b"quick"] * 8


def test_a_client_has_as_many_calls_under_way_as_slots(shm_rig: Rig) -> None:
    shm_rig.answer = None
    client = shm_rig.client()
    with ThreadPoolExecutor(LAYOUT.slots + 1) as pool:
        waiting = [pool.submit(client.call, b"%d" % number, DEADLINE_SECONDS) for number in range(LAYOUT.slots)]
        assert wait_until(lambda: len(shm_rig.requests) == LAYOUT.slots, DEADLINE_SECONDS)
        with pytest.raises(RequestNotSent, match="slots"):
            client.call(b"one more", 0.2)
        assert len(shm_rig.requests) == LAYOUT.slots
        for request in shm_rig.requests:
            request.reply(request.payload)
        assert [item.result() for item in waiting] == [b"%d" % number for number in range(LAYOUT.slots)]


def test_a_server_takes_no_more_than_it_carries_out(shm_rig: Rig, clock: Clock) -> None:
    """Calls that were given up are carried out still: their client gets no further ones begun."""
    shm_rig.answer = None
    client = shm_rig.client()
    give_up(shm_rig, client, clock, LAYOUT.slots)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.call, b"too many", PATIENCE_SECONDS)
        clock.looked_at()
        clock.later += PATIENCE_SECONDS
        with pytest.raises(AnswerLost):
            waiting.result()
    assert len(shm_rig.requests) == LAYOUT.slots
    shm_rig.requests[0].reply(b"")
    shm_rig.answer = lambda request: request.reply(b"quick")
    assert shm_rig.client().call(b"x", DEADLINE_SECONDS) == b"quick"
    assert b"too many" not in [item.payload for item in shm_rig.requests], "what was withdrawn is never begun"


def test_signs_of_the_server_keep_a_long_call_waiting(shm_rig: Rig, clock: Clock) -> None:
    shm_rig.answer = None
    client = shm_rig.client()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.call, b"long", DEADLINE_SECONDS, PATIENCE_SECONDS)
        assert wait_until(lambda: len(shm_rig.requests) == 1, DEADLINE_SECONDS)
        for _ in range(10):
            clock.looked_at()
            clock.later += 0.9 * PATIENCE_SECONDS
            shm_rig.requests[0].beat()
        shm_rig.requests[0].reply(b"done")
        assert waiting.result() == b"done"
        silent = pool.submit(client.call, b"silent", DEADLINE_SECONDS, PATIENCE_SECONDS)
        assert wait_until(lambda: len(shm_rig.requests) == 2, DEADLINE_SECONDS)
        clock.looked_at()
        clock.later += PATIENCE_SECONDS
        with pytest.raises(AnswerLost, match="no sign"):
            silent.result()


def test_too_long_ones_are_refused_with_nothing_done(shm_rig: Rig) -> None:
    client = shm_rig.client()
    with pytest.raises(RequestNotSent, match="longer"):
        client.call(bytes(LAYOUT.max_message_bytes + 1), 1.0)
    assert not shm_rig.requests

    def answer(request: Request) -> None:
        with pytest.raises(BadRequest, match="longer"):
            request.reply(bytes(LAYOUT.max_message_bytes + 1))
        request.reply(b"shorter")

    shm_rig.answer = answer
    assert client.call(b"x", DEADLINE_SECONDS) == b"shorter"


def test_a_stopped_server_has_not_done_what_it_refuses(rig: Rig) -> None:
    client = rig.client()
    assert client.call(b"abc", DEADLINE_SECONDS) == b"cba"
    rig.server.stop()
    with pytest.raises(RequestNotSent):
        client.call(b"abc", DEADLINE_SECONDS)
    assert len(rig.requests) == 1
    assert not client.usable
    with pytest.raises(TransportGone):
        rig.server.offer(KeyPair().public)


def test_a_server_that_closes_lets_clients_fetch_their_replies(shm_rig: Rig) -> None:
    shm_rig.answer = None
    client = shm_rig.client()
    payload = pattern(1, 20_000)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.call, b"x", DEADLINE_SECONDS)
        assert wait_until(lambda: len(shm_rig.requests) == 1, DEADLINE_SECONDS)
        shm_rig.server.stop()
        shm_rig.requests[0].reply(payload)
        shm_rig.server.close()
        assert waiting.result() == payload


def test_the_end_of_a_server_ends_who_waits(rig: Rig) -> None:
    rig.answer = None
    client = rig.client()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.call, b"x", DEADLINE_SECONDS)
        assert wait_until(lambda: len(rig.requests) == 1, DEADLINE_SECONDS)
        rig.server.close()
        with pytest.raises(AnswerLost):
            waiting.result(DEADLINE_SECONDS / 2)
    with pytest.raises(RequestNotSent):
        client.call(b"x", 1.0)


def test_a_new_client_takes_the_place_of_the_one_silent_longest(tmp_path: Path) -> None:
    rig = Rig(ShmTransport(tmp_path), ServerTerms(max_clients=2))
    first, second = rig.client(), rig.client()
    assert first.call(b"ab", DEADLINE_SECONDS) == b"ba"
    third = rig.client()
    assert third.call(b"ab", DEADLINE_SECONDS) == b"ba"
    assert first.call(b"ab", DEADLINE_SECONDS) == b"ba"
    with pytest.raises(RequestNotSent):
        second.call(b"ab", DEADLINE_SECONDS)
    assert rig.server.clients == 2
    rig.close()


def test_with_all_clients_calling_there_is_no_room_for_one_more(tmp_path: Path, clock: Clock) -> None:
    rig = Rig(ShmTransport(tmp_path), ServerTerms(max_clients=1, linger_seconds=0.1))
    rig.answer = None
    give_up(rig, rig.client(), clock, 1)
    with pytest.raises(Unavailable, match="max_clients"):
        rig.server.offer(KeyPair().public)
    rig.close()


def test_a_client_that_is_silent_for_long_loses_its_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(rpc_server, "time", clock)
    rig = Rig(ShmTransport(tmp_path), ServerTerms(linger_seconds=0.1, sweep_seconds=0.05))
    client = rig.client()
    assert client.call(b"ab", DEADLINE_SECONDS) == b"ba"
    clock.later += ServerTerms().silent_seconds
    assert wait_until(lambda: not rig.server.clients, DEADLINE_SECONDS)
    with pytest.raises(RequestNotSent):
        client.call(b"x", 1.0)
    assert rig.client().call(b"ab", DEADLINE_SECONDS) == b"ba"
    rig.close()


LOSSY = [
    FaultPlan(seed=1, lost=0.1),
    FaultPlan(seed=2, unanswered=0.1),
    FaultPlan(seed=3, broken=0.02, partial=0.02),
    FaultPlan(seed=4, lost=0.03, unanswered=0.03, broken=0.01, partial=0.01, delayed=0.2, max_delay_seconds=0.002),
]


@pytest.mark.parametrize("plan", LOSSY, ids=repr)
def test_nothing_is_done_twice_or_lost_in_silence(plan: FaultPlan, tmp_path: Path) -> None:
    """Over a bad link: a reply is the right one, what was not sent was not done, and nothing is done twice."""
    rig = Rig(ShmTransport(tmp_path))
    faulty = FaultTransport(rig.transport, plan, pause=lambda _seconds: None)
    client: RpcClient | None = None
    outcome: dict[int, str] = {}
    for number in range(120):
        payload = b"%d " % number * (1 + number % 7 * 60)
        while client is None or not client.usable:
            if client is not None:
                client.close()
            with suppress(TransportGone):
                client = rig.client(1.0, faulty)
        try:
            assert client.call(payload, 5.0) == payload[::-1]
            outcome[number] = "answered"
        except RequestNotSent:
            outcome[number] = "not sent"
        except AnswerLost:
            outcome[number] = "lost"
    done = [int(request.payload.split()[0]) for request in rig.requests]
    rig.close()
    assert len(done) == len(set(done)), "something was done twice"
    assert {number for number, what in outcome.items() if what == "answered"} <= set(done)
    assert not {number for number, what in outcome.items() if what == "not sent"} & set(done)
    assert sum(what == "answered" for what in outcome.values()) > 60


def test_the_server_looks_rarely_while_nobody_calls(tmp_path: Path) -> None:
    """What it costs of a core is in `make bench-rpc`; here: how often it looks, which no busy machine makes more."""
    terms = ServerTerms(sweep_seconds=3600.0)
    rig = Rig(ShmTransport(tmp_path), replace(terms, pace=replace(terms.pace, longest_seconds=0.01)))
    lender, looks, watches = rig.server._lender, [], []
    load, watch = lender.load, lender.watch
    lender.load = lambda *given: looks.append(given) or load(*given)
    lender.watch = lambda *given: watches.append(given) or watch(*given)
    for _ in range(2):
        assert rig.client().call(b"ab", DEADLINE_SECONDS) == b"ba"
        watches.clear()
        assert wait_until(lambda: watches, DEADLINE_SECONDS)
    assert {pause for *_, pause, _ in watches} == {0.01}
    looks.clear()
    threading.Event().wait(0.5)
    assert len(looks) <= 55  # none, where its watching is compiled
    rig.close()
