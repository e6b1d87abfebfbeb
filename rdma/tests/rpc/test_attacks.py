"""Somebody who writes into the memory of calls, or on the network that leads there: nothing of it is acted on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Link, Transport
from pondstack_rdma.errors import AccessRefused, PartialBatch, RegistrationFailed, TransportGone, WrongBorrower
from pondstack_rdma.model import Key, Region
from pondstack_rdma.rpc.client import RpcClient
from pondstack_rdma.rpc.connection import Request
from pondstack_rdma.rpc.frame import ReplyHeader
from pondstack_rdma.rpc.layout import HEADER_BYTES
from pondstack_rdma.rpc.sealer import FrameSealer
from pondstack_rdma.rpc.server import RpcServer
from pondstack_rdma.rpc.session import KeyPair, Session
from rdma.tests.harness import DEADLINE_SECONDS, HARNESSES, TIMEOUT_SECONDS

from .raw import LAYOUT, Raw, offered

SEED = 19


def test_a_forged_request_is_refused_and_counted_once(raw: Raw) -> None:
    sealed, header = raw.frame(b"abc")
    dice = Random(SEED)
    for count in range(1, 4):
        forged = bytearray(header)
        forged[dice.randrange(HEADER_BYTES)] ^= 1 << dice.randrange(8)
        raw.write((sealed, bytes(forged)))
        assert raw.noted(count, "not of the other end"), f"seed {SEED}"
    raw.swept()
    assert (raw.requests, len(raw.refused)) == ([], 3)
    raw.write_header(header)
    assert raw.done(b"abc")


def test_a_forged_part_is_refused(raw: Raw) -> None:
    sealed, header = raw.frame(b"abc")
    raw.write((bytes([sealed[0] ^ 1]) + sealed[1:], header))
    assert raw.noted(1, "part")
    assert raw.requests == []


def test_a_recorded_request_is_not_done_again(raw: Raw) -> None:
    recorded = raw.frame(b"one")
    raw.write(recorded)
    assert raw.done(b"one")
    raw.write(raw.frame(b"two", sequence=2))
    assert raw.done(b"one", b"two")
    raw.write(recorded)
    assert raw.noted(1, "came before")
    assert raw.requests == [b"one", b"two"]


def test_the_part_of_another_request_is_refused(raw: Raw) -> None:
    """Its header is honest: what it describes was exchanged for what the same client sent before."""
    former, first = raw.frame(b"detach")
    raw.write((former, first))
    assert raw.done(b"detach")
    _, second = raw.frame(b"report", sequence=2)
    raw.write((former, second))
    assert raw.noted(1, "part")
    assert raw.requests == [b"detach"]


def test_a_frame_of_another_slot_is_refused(raw: Raw) -> None:
    raw.write(raw.frame(b"abc", slot=0), slot=1)
    assert raw.noted(1, "slot 1")
    assert raw.requests == []


def test_the_servers_own_reply_is_no_request(raw: Raw) -> None:
    raw.write(raw.frame(b"abc"))
    assert raw.done(b"abc")
    reply = raw.reply()
    raw.write((reply[HEADER_BYTES:], reply[:HEADER_BYTES]), slot=1)
    assert raw.noted(1, "slot 1")
    assert raw.requests == [b"abc"]


def sessions_of_others(server: RpcServer, raw: Raw) -> list[Session]:
    """Return what others seal with: another client, and who has read the offer and made up the rest."""
    _, other = offered(server)
    pair = KeyPair()
    return [
        other,
        pair.call(raw.offer.public_key, raw.offer.session),
        pair.serve(raw.offer.public_key, raw.offer.session),
        Session(raw.offer.session, bytes(32), bytes(32)),
    ]


@pytest.mark.parametrize("whose", range(4))
def test_who_has_the_offer_and_not_the_keys_is_refused(raw: Raw, whose: int) -> None:
    """All that crosses the broker, ticket and keys of the memory included: he connects, and writes."""
    raw.sealers = [FrameSealer(sessions_of_others(raw.server, raw)[whose], slot) for slot in range(LAYOUT.slots)]
    with raw.transport.connect(raw.offer.ticket, TIMEOUT_SECONDS) as link:
        raw.link, own = link, raw.link
        raw.write(raw.frame(b"release h1"))
        raw.link = own
    assert raw.noted(1)
    assert raw.requests == []


class Waiting(Raw):
    """A server that answers when the test says so, a client, and somebody who writes where its replies are."""

    def __init__(self, folder: Path) -> None:
        self.kept: list[Request] = []
        super().__init__(folder)
        self.told: list[str] = []
        self.victim = RpcClient(self.link, self.offer, self.session, lambda error: self.told.append(error.message))

    def _deliver(self, request: Request) -> None:
        self.requests.append(request.payload)
        self.kept.append(request)

    def write_reply(self, header: bytes, part: bytes = b"") -> None:
        """Write a header, and what it describes, as a server would."""
        at = LAYOUT.reply(0)
        if part:
            self.server._lender.store(self._region(), at + HEADER_BYTES, part)
        self.server._lender.store(self._region(), at, header)

    def show(self) -> None:
        """Have the server write its own header again."""
        self.server._connections[self.offer.bell]._show(0)

    def _region(self):
        return self.server._connections[self.offer.bell].region


@pytest.fixture
def waiting(tmp_path: Path):
    made = Waiting(tmp_path)
    yield made
    made.close()


def forged_reply(waiting: Waiting) -> tuple[bytes, bytes]:
    """Return the reply of somebody who has not the keys."""
    sealer = FrameSealer(KeyPair().call(waiting.offer.public_key, waiting.offer.session), 0)
    part, sealed = sealer.part(b"forged")
    return sealer.header(ReplyHeader(0, 1, part, 1, 0, 1, len(sealed))), sealed


def closing_reply(_waiting: Waiting) -> tuple[bytes, bytes]:
    """Return a header by which the client would take its request for not carried out, and send it by another way."""
    return ReplyHeader(7, 0, closing=1).pack() + bytes(16), b""


@pytest.mark.parametrize("forge", [forged_reply, closing_reply])
def test_a_forged_reply_is_not_taken(waiting: Waiting, forge: Callable[[Waiting], tuple[bytes, bytes]]) -> None:
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(waiting.victim.call, b"abc", DEADLINE_SECONDS)
        assert waiting.done(b"abc")
        waiting.write_reply(*forge(waiting))
        assert wait_until(lambda: bool(waiting.told), DEADLINE_SECONDS)
        assert "not of the other end" in waiting.told[0]
        waiting.kept[0].reply(b"true")
        assert call.result() == b"true"


def test_a_recorded_reply_is_not_taken_for_another_call(waiting: Waiting) -> None:
    recorded = b""
    with ThreadPoolExecutor(1) as pool:
        for number, slot in enumerate((0, 1, 0)):  # a client takes its slots in turn
            call = pool.submit(waiting.victim.call, b"%d" % number, DEADLINE_SECONDS)
            assert wait_until(lambda seen=number: len(waiting.kept) > seen, DEADLINE_SECONDS)
            if slot == 0 and recorded:
                waiting.write_reply(recorded[:HEADER_BYTES], recorded[HEADER_BYTES:])
                assert wait_until(lambda: bool(waiting.told), DEADLINE_SECONDS)
                assert "came before" in waiting.told[0]
            waiting.kept[number].reply(b"reply %d" % number)
            assert call.result() == b"reply %d" % number
            if not number:
                recorded = waiting.reply()


@pytest.fixture(params=HARNESSES, ids=lambda make: make.__name__)
def one_client(request: pytest.FixtureRequest, tmp_path: Path):
    """A server with room for one client, on every driver."""
    transport: Transport = request.param(tmp_path)
    made = Raw(tmp_path, transport, max_clients=1)
    yield made
    made.close()


def reached(link: Link, key: Key) -> bool:
    """Return whether a write by a link, with a key, arrives."""
    try:
        link.write(key, LAYOUT.request(0), b"forged")
    except (AccessRefused, PartialBatch, TransportGone):
        return False
    return True


def test_an_evicted_client_reaches_nothing_of_the_next_one(one_client: Raw) -> None:
    """He has kept his ticket, his link, his keys, and has read the next client's offer but for its secret."""
    raw = one_client
    assert reached(raw.link, raw.offer.region)
    offer, session = offered(raw.server)
    with raw.transport.connect(offer.ticket, TIMEOUT_SECONDS) as link:
        link.open(offer.region)
        if raw.transport.characteristics.driver == "verbs" and hasattr(raw.link, "_native"):
            # Past the library: what the device knows the next client's region by.
            location = link._regions[offer.region]  # type: ignore[attr-defined]
            raw.link._regions[offer.region] = location
            raw.link._native.add(offer.region, *location)
        for key in (offer.region, offer.bells, raw.offer.region, raw.offer.bells):
            assert not reached(raw.link, key)
        with pytest.raises(WrongBorrower):
            raw.transport.connect(raw.offer.ticket, TIMEOUT_SECONDS)
        client = RpcClient(link, offer, session)
        assert client.call(b"abc", DEADLINE_SECONDS) == b"abc"


def test_of_an_offer_that_fails_halfway_nothing_is_kept(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    lender, before = raw.server._lender, raw.server.clients
    export, kept = lender.export, (len(list(lender._keyring)), len(lender._regions))

    def full(region: Region, borrower: str) -> Key:
        if region == raw.server._bells:
            raise RegistrationFailed("no room in a table")
        return export(region, borrower)

    monkeypatch.setattr(lender, "export", full)
    with pytest.raises(RegistrationFailed):
        offered(raw.server)
    assert (len(list(lender._keyring)), len(lender._regions)) == kept
    assert (set(lender._keyring._secrets), raw.server.clients) == ({raw.offer.session}, before)


def test_names_never_come_again_and_nothing_is_kept_of_them(one_client: Raw) -> None:
    raw = one_client
    names = {offered(raw.server)[0].session for _ in range(20)}
    assert len(names | {raw.offer.session}) == 21
    lender = raw.server._lender
    assert set(lender._keyring._secrets) == {raw.server._connections[0].offer.session}
    assert len(list(lender._keyring)) == 2
    for kept in ("_links", "_pages", "_pds"):
        assert len(getattr(lender, kept, ())) <= 1
