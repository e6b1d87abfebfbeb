"""What a server makes of regions that are half-written, late, repeated, or written by somebody with other plans."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.errors import BadRequest
from pondstack_rack.wait import wait_until
from pondstack_rdma.base import Link
from pondstack_rdma.errors import AccessRefused, TransportGone
from pondstack_rdma.rpc.client import RpcClient
from pondstack_rdma.rpc.connection import Request
from pondstack_rdma.rpc.frame import ReplyHeader, RequestHeader
from pondstack_rdma.rpc.layout import HEADER_BYTES, Layout
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.pace import Pace
from pondstack_rdma.rpc.server import RpcServer, ServerTerms
from pondstack_rdma.rpc.slot import Slot
from pondstack_rdma.shm import ShmTransport
from rdma.tests.harness import DEADLINE_SECONDS, TIMEOUT_SECONDS

LAYOUT = Layout(slots=2, slot_bytes=512, max_message_bytes=4096)


class Raw:
    """A client that writes what it likes, and a server that answers all."""

    def __init__(self, folder: Path) -> None:
        self.transport = ShmTransport(folder)
        self.requests: list[bytes] = []
        terms = ServerTerms(sweep_seconds=0.02, linger_seconds=0.1)
        self.server = RpcServer(self.transport.lend("server"), self._deliver, LAYOUT, terms)
        self.offer = self.server.offer()
        self.link: Link = self.transport.connect(self.offer.ticket, TIMEOUT_SECONDS)

    def _deliver(self, request: Request) -> None:
        self.requests.append(request.payload)
        request.reply(request.payload)

    def client(self) -> RpcClient:
        offer = self.server.offer()
        return RpcClient(self.transport.connect(offer.ticket, TIMEOUT_SECONDS), offer)

    def payload(self, data: bytes, slot: int = 0) -> None:
        self.link.write(self.offer.region, LAYOUT.request(slot), data)

    def header(self, slot: int = 0, **fields: Any) -> None:
        data = fields.pop("data", b"")
        given: dict[str, Any] = {
            "generation": self.offer.generation,
            "sequence": 1,
            "fragment": 0,
            "fragments": 1,
            "length": len(data),
            "checksum": crc32(data),
        }
        self.link.write(self.offer.region, LAYOUT.header(slot), RequestHeader(**(given | fields)).pack())

    def swept(self) -> None:
        """Return after the server has looked at everything, twice."""
        for _ in range(2):
            before = self.server._swept
            assert wait_until(lambda seen=before: self.server._swept > seen, DEADLINE_SECONDS)

    def close(self) -> None:
        self.link.close()
        self.server.close()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    made = Raw(tmp_path)
    yield made
    made.close()


def test_a_request_is_found_without_its_bell(raw: Raw) -> None:
    raw.payload(b"abc")
    raw.header(data=b"abc")
    assert wait_until(lambda: raw.requests == [b"abc"], DEADLINE_SECONDS)


def test_a_half_written_request_waits_for_its_other_half(raw: Raw) -> None:
    raw.payload(b"ab?")
    raw.header(data=b"abc")
    raw.swept()
    assert raw.requests == []
    raw.payload(b"abc")
    assert wait_until(lambda: raw.requests == [b"abc"], DEADLINE_SECONDS)


def test_a_torn_header_is_none(raw: Raw) -> None:
    raw.payload(b"abc")
    header = RequestHeader(raw.offer.generation, 1, 0, 1, 3, crc32(b"abc")).pack()
    for end in range(1, 44):
        raw.link.write(raw.offer.region, 0, header[:end].ljust(HEADER_BYTES, b"\0"))
    raw.swept()
    assert raw.requests == []
    raw.link.write(raw.offer.region, 0, header)
    assert wait_until(lambda: raw.requests == [b"abc"], DEADLINE_SECONDS)


def test_what_comes_again_or_late_is_not_done_again(raw: Raw) -> None:
    for sequence, data in ((1, b"one"), (2, b"two")):
        raw.payload(data)
        raw.header(sequence=sequence, data=data)
        assert wait_until(lambda wanted=data: raw.requests[-1:] == [wanted], DEADLINE_SECONDS)
    for sequence, data in ((2, b"two"), (1, b"one")):
        raw.payload(data)
        raw.header(sequence=sequence, data=data, fetched=1)
        raw.header(sequence=sequence, data=data)
        raw.swept()
    assert raw.requests == [b"one", b"two"]


def test_what_was_withdrawn_before_it_was_taken_is_never_taken(raw: Raw) -> None:
    raw.header(sequence=5, withdrawn=1)
    raw.swept()
    raw.payload(b"abc")
    raw.header(sequence=5, data=b"abc")
    raw.swept()
    assert raw.requests == []
    raw.header(sequence=6, data=b"abc")
    assert wait_until(lambda: raw.requests == [b"abc"], DEADLINE_SECONDS)


def test_a_header_of_another_generation_is_none(raw: Raw) -> None:
    raw.payload(b"abc")
    raw.header(data=b"abc", generation=raw.offer.generation ^ 1)
    raw.swept()
    assert raw.requests == []


@pytest.mark.parametrize(
    "nonsense", [{"length": 513}, {"length": 2**32 - 1}, {"fragment": 1}, {"fragments": 0}, {"fragments": 9}]
)
def test_who_writes_nonsense_is_hung_up_on_and_nobody_else(raw: Raw, nonsense: dict[str, int]) -> None:
    other = raw.client()
    raw.header(**nonsense)
    assert wait_until(lambda: raw.server.clients == 1, DEADLINE_SECONDS)
    with pytest.raises((AccessRefused, TransportGone)):
        raw.payload(b"abc")
    assert other.call(b"fine", DEADLINE_SECONDS) == b"fine"
    other.close()


def test_bells_that_another_client_silences_only_make_late(raw: Raw) -> None:
    """All clients can write all bells: these are hints."""
    other = raw.client()
    for _ in range(20):
        raw.link.write(raw.offer.bells, 0, bytes(512))
        assert other.call(b"fine", DEADLINE_SECONDS) == b"fine"
    other.close()


@given(st.binary(max_size=HEADER_BYTES))
def test_random_bytes_are_no_header(data: bytes) -> None:
    padded = data.ljust(HEADER_BYTES, b"\0")
    assert RequestHeader.unpack(padded) is None
    assert ReplyHeader.unpack(padded) is None


@given(st.binary(max_size=3000), st.data())
def test_a_slot_puts_a_request_together_whatever_is_repeated(message: bytes, data: st.DataObject) -> None:
    slot, count = Slot(1, LAYOUT), LAYOUT.fragments(len(message))
    parts = [message[at * 512 : (at + 1) * 512] for at in range(count)]
    whole, expected = None, 0
    while expected < count:
        number = data.draw(st.integers(0, expected))
        header = RequestHeader(1, 7, number, count, len(parts[number]), 0)
        assert slot.wants(header) == (number == expected)
        if number == expected:
            whole = slot.take(header, parts[number])
            expected += 1
    assert whole == message
    assert slot.reserved_bytes == 0
    assert not any(slot.wants(RequestHeader(1, 7, number, count, 0, 0)) for number in range(count))


def test_layouts_and_offers_that_cannot_be_are_refused(raw: Raw) -> None:
    for wrong in ({"slots": 0}, {"slots": 65}, {"slot_bytes": 100}, {"slot_bytes": 2**21}, {"max_message_bytes": 1}):
        with pytest.raises(BadRequest):
            Layout.from_dict(LAYOUT.to_dict() | wrong)
    good = raw.offer.to_dict()
    assert Offer.from_dict(good) == raw.offer
    for wrong in ({}, {"version": 2}, None, good | {"bell": "x"}, good | {"ticket": {}}):
        with pytest.raises(BadRequest):
            Offer.from_dict(wrong)
    assert raw.offer.ticket.secret.hex() not in repr(raw.offer)


def test_pauses_grow_with_the_time_waited_and_are_bounded() -> None:
    pace = Pace(spin_seconds=0.001, share=4, longest_seconds=0.01)
    assert [pace.pause(waited) for waited in (0.0, 0.0009, 0.004, 0.02, 0.04, 3600.0)] == [
        0,
        0,
        0.001,
        0.005,
        0.01,
        0.01,
    ]
