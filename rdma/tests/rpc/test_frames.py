"""What a server makes of regions that are half-written, late, repeated, or written by somebody with other plans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondstack.domain.errors import BadRequest
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import AccessRefused, TransportGone
from pondstack_rdma.rpc.frame import ReplyHeader, RequestHeader
from pondstack_rdma.rpc.layout import HEADER_BYTES, Layout
from pondstack_rdma.rpc.offer import Offer
from pondstack_rdma.rpc.pace import Pace
from pondstack_rdma.rpc.sealer import FrameOpener
from pondstack_rdma.rpc.session import KeyPair
from pondstack_rdma.rpc.slot import Slot
from rdma.tests.harness import DEADLINE_SECONDS

from .raw import LAYOUT, TORN_SECONDS, Raw

PART = LAYOUT.part_bytes


def test_a_request_is_found_without_its_bell(raw: Raw) -> None:
    raw.write(raw.frame(b"abc"))
    assert raw.done(b"abc")


def test_a_half_written_request_waits_for_its_other_half(raw: Raw) -> None:
    sealed, header = raw.frame(b"abc")
    raw.write((sealed[:-1], header))
    raw.swept()
    assert raw.requests == []
    raw.write_part(sealed)
    assert raw.done(b"abc")


def test_a_torn_header_is_none(raw: Raw) -> None:
    sealed, header = raw.frame(b"abc")
    raw.write_part(sealed)
    for end in range(1, HEADER_BYTES):
        raw.write_header(header[:end].ljust(HEADER_BYTES, b"\0"))
    raw.swept()
    assert raw.requests == []
    raw.write_header(header)
    assert raw.done(b"abc")


def test_what_is_half_written_for_long_is_told_once_and_taken_all_the_same(raw: Raw) -> None:
    sealed, header = raw.frame(b"abc")
    raw.write((sealed[:-1] + bytes(1), header))
    assert raw.noted(1, "part")
    raw.swept()
    raw.write_part(sealed)
    assert raw.done(b"abc")
    sealed, header = raw.frame(b"abc", sequence=2)
    raw.write_part(sealed)
    raw.write_header(header[:-1] + bytes(1))
    assert raw.noted(2, "never finished")
    raw.swept()
    raw.write_header(header)
    assert raw.done(b"abc", b"abc")
    assert len(raw.refused) == 2


def test_what_comes_again_is_not_done_again(raw: Raw) -> None:
    """From its own client, under new numbers."""
    for sequence, data in ((1, b"one"), (2, b"two")):
        raw.write(raw.frame(data, sequence=sequence))
        assert wait_until(lambda wanted=data: raw.requests[-1:] == [wanted], DEADLINE_SECONDS)
    for sequence, data in ((2, b"two"), (1, b"one")):
        raw.write(raw.frame(data, sequence=sequence, fetched=1))
        raw.write(raw.frame(data, sequence=sequence))
        raw.swept()
    assert raw.requests == [b"one", b"two"]


def test_what_was_withdrawn_before_it_was_taken_is_never_taken(raw: Raw) -> None:
    raw.write_header(raw.header(sequence=5, withdrawn=1))
    raw.swept()
    raw.write(raw.frame(b"abc", sequence=5))
    raw.swept()
    assert raw.requests == []
    raw.write(raw.frame(b"abc", sequence=6))
    assert raw.done(b"abc")


@pytest.mark.parametrize(
    "nonsense", [{"length": 513}, {"length": 2**32 - 1}, {"fragment": 1}, {"fragments": 0}, {"fragments": 10}]
)
def test_who_writes_nonsense_is_hung_up_on_and_nobody_else(raw: Raw, nonsense: dict[str, int]) -> None:
    other = raw.client()
    raw.write_header(raw.header(**nonsense))
    assert wait_until(lambda: raw.server.clients == 1, DEADLINE_SECONDS)
    with pytest.raises((AccessRefused, TransportGone)):
        raw.write_part(b"abc")
    assert other.call(b"fine", DEADLINE_SECONDS) == b"fine"
    other.close()


def test_bells_that_another_client_silences_only_make_late(raw: Raw) -> None:
    """All clients can write all bells: these are hints."""
    other = raw.client()
    for _ in range(20):
        raw.link.write(raw.offer.bells, 0, bytes(512))
        assert other.call(b"fine", DEADLINE_SECONDS) == b"fine"
    other.close()


@pytest.mark.parametrize("kind", [RequestHeader, ReplyHeader])
@given(data=st.binary(max_size=HEADER_BYTES))
def test_random_bytes_are_no_header(kind: type[RequestHeader], data: bytes) -> None:
    told: list[object] = []
    session = KeyPair().call(KeyPair().public, "session")
    opener = FrameOpener(session, 0, kind, told.append, TORN_SECONDS)
    assert opener.header(data.ljust(HEADER_BYTES, b"\0"), 1.0) is None
    assert opener.header(data.ljust(HEADER_BYTES, b"\0"), 1.0) is None
    assert told == []


@given(st.binary(max_size=3000), st.data())
def test_a_slot_puts_a_request_together_whatever_is_repeated(message: bytes, data: st.DataObject) -> None:
    slot, count = Slot(LAYOUT), LAYOUT.fragments(len(message))
    parts = [message[at * PART : (at + 1) * PART] for at in range(count)]
    whole, expected = None, 0
    while expected < count:
        number = data.draw(st.integers(0, expected))
        header = RequestHeader(1, 7, 1, number, count, len(parts[number]))
        assert slot.wants(header) == (number == expected)
        if number == expected:
            whole = slot.take(header, parts[number])
            expected += 1
    assert whole == message
    assert slot.reserved_bytes == 0
    assert not any(slot.wants(RequestHeader(1, 7, 1, number, count, 0)) for number in range(count))


def test_layouts_and_offers_that_cannot_be_are_refused(raw: Raw) -> None:
    for wrong in ({"slots": 0}, {"slots": 65}, {"slot_bytes": 100}, {"slot_bytes": 2**21}, {"max_message_bytes": 1}):
        with pytest.raises(BadRequest):
            Layout.from_dict(LAYOUT.to_dict() | wrong)
    good = raw.offer.to_dict()
    assert Offer.from_dict(good) == raw.offer
    changed = [good | {name: value} for name, value in {"bell": "x", "ticket": {}, "public_key": "x"}.items()]
    for wrong in ({}, {"version": 1}, {"version": 3}, None, *changed):
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
