"""What every transport does with keys: forged, of others, revoked and rotated ones."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from pondstack.domain.errors import BadRequest, InUse, NotFound
from pondstack_rdma.base import Link
from pondstack_rdma.errors import AccessRefused, KeyRevoked, TransportGone, UnknownKey, WrongBorrower
from pondstack_rdma.model import Key, Ticket
from rdma.tests.harness import DEADLINE_SECONDS, PAGE, SIZE, Rig, connect, pattern

ALPHABET = 'host12 /\0\n"é\U0001f984'
"""Given, as hypothesis would look at all of Unicode first: minutes in an emulated host."""


def forged(key: Key) -> st.SearchStrategy[Key]:
    """Keys that are almost right: one part of a real one was changed."""
    bits = st.integers(0, 8 * len(key.token) - 1)
    flipped = bits.map(lambda bit: (int.from_bytes(key.token, "little") ^ (1 << bit)).to_bytes(16, "little"))
    names = st.text(ALPHABET, max_size=40)
    return st.one_of(
        flipped.map(lambda token: replace(key, token=token)),
        st.binary(max_size=64).filter(lambda token: token != key.token).map(lambda token: replace(key, token=token)),
        st.integers(-(2**70), 2**70).filter(lambda n: n != key.number).map(lambda n: replace(key, number=n)),
        st.integers(-(2**70), 2**70).filter(lambda n: n != key.size_bytes).map(lambda n: replace(key, size_bytes=n)),
        names.filter(lambda name: name != key.borrower).map(lambda name: replace(key, borrower=name)),
    )


@seed(20181)
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_forged_key_is_refused_and_disturbs_nothing(rig: Rig, data: st.DataObject) -> None:
    rig.lender.store(rig.region, 0, pattern(5, SIZE))
    key = data.draw(forged(rig.key))
    offset = data.draw(st.integers(0, SIZE - 8))
    with pytest.raises(AccessRefused):
        rig.link.write(key, offset, b"overwrit")
    with pytest.raises(AccessRefused):
        rig.link.read_into(key, offset, bytearray(8))
    assert rig.link.read(rig.key, 0, SIZE) == pattern(5, SIZE)


def test_a_key_of_another_lender_is_unknown(rig: Rig) -> None:
    with rig.transport.lend("lender2") as other:
        key = other.export(other.register(SIZE), "host1")
        with pytest.raises(UnknownKey):
            rig.link.write(key, 0, b"x")


def test_a_ticket_that_is_not_right_does_not_connect(rig: Rig) -> None:
    ticket = rig.lender.admit("host1")
    for wrong in (replace(ticket, secret=bytes(16)), replace(ticket, secret=b""), replace(ticket, borrower="host2")):
        with pytest.raises(WrongBorrower, match="ask for a new one"):
            connect(rig.transport, wrong)
    assert rig.lender.admit("host1") == ticket


def test_another_borrowers_key_is_refused(rig: Rig) -> None:
    rig.link.write(rig.key, 0, b"of host1")
    with rig.borrow("host2") as thief:
        with pytest.raises(WrongBorrower, match="host2"):
            thief.read(rig.key, 0, 8)
        with pytest.raises(AccessRefused):
            thief.write(replace(rig.key, borrower="host2"), 0, b"of host2")
    assert rig.link.read(rig.key, 0, 8) == b"of host1"


def test_a_revoked_key_is_refused_at_once_and_others_are_not_disturbed(rig: Rig) -> None:
    other = rig.lender.export(rig.lender.register(SIZE), "host2")
    with rig.borrow("host2") as second:
        second.write(other, 0, b"of host2")
        rig.link.write(rig.key, 0, b"of host1")
        assert rig.lender.revoke(rig.key) is True
        for _ in range(2):
            with pytest.raises(KeyRevoked, match="revoked"):
                rig.link.write(rig.key, 0, b"x")
            with pytest.raises(KeyRevoked, match="revoked"):
                rig.link.read_into(rig.key, 0, bytearray(1))
        assert second.read(other, 0, 8) == b"of host2"
        second.write(other, 8, b"goes on")
    assert rig.lender.revoke(rig.key) is False


def test_a_revoked_key_is_refused_by_a_link_that_never_used_it(rig: Rig) -> None:
    rig.lender.revoke(rig.key)
    with pytest.raises(KeyRevoked):
        rig.link.open(rig.key)


def test_a_dismissed_borrower_is_hung_up_on_and_comes_back_with_another_ticket(rig: Rig) -> None:
    ticket, second = rig.lender.admit("host1"), rig.lender.export(rig.lender.register(SIZE), "host2")
    with rig.borrow("host2") as other:
        other.write(second, 0, b"of host2")
        rig.link.write(rig.key, 0, b"of host1")
        assert rig.lender.dismiss("host1") is True
        assert rig.lender.dismiss("host1") is False
        with pytest.raises((KeyRevoked, TransportGone)):
            rig.link.write(rig.key, 0, b"x")
        with pytest.raises(TransportGone):
            rig.link.flush()
        with pytest.raises(WrongBorrower):
            connect(rig.transport, ticket)
        other.write(second, 8, b"goes on")
    rig.link.close()
    key = rig.lender.export(rig.region, "host1")
    rig.link = rig.borrow("host1")
    with pytest.raises(AccessRefused):
        rig.link.open(rig.key)
    assert rig.after_refusal().read(key, 0, 8) == bytes(8)
    assert rig.lender.revoke(rig.key) is False


def test_a_forged_key_is_not_revoked(rig: Rig) -> None:
    assert rig.lender.revoke(replace(rig.key, token=bytes(16))) is False
    rig.link.write(rig.key, 0, b"goes on")


def test_a_key_is_rotated_without_loss(rig: Rig) -> None:
    rig.link.write(rig.key, 0, b"content")
    fresh = rig.lender.export(rig.region, "host1")
    assert rig.lender.revoke(rig.key)
    with pytest.raises(KeyRevoked):
        rig.link.read(rig.key, 0, 7)
    assert rig.after_refusal().read(fresh, 0, 7) == b"content"


def test_the_next_borrower_finds_zeros(rig: Rig) -> None:
    rig.link.write(rig.key, 0, pattern(6, SIZE))
    rig.lender.revoke(rig.key)
    key = rig.lender.export(rig.region, "host2")
    with rig.borrow("host2") as second:
        assert second.read(key, 0, SIZE) == bytes(SIZE)
        second.write(key, 0, b"of host2")
        with pytest.raises(KeyRevoked):
            rig.link.write(rig.key, 0, b"of host1")
        assert second.read(key, 0, 8) == b"of host2"


def test_writes_that_race_with_a_revocation_never_reach_the_next_borrower(rig: Rig) -> None:
    """Again and again: host1 writes as fast as it can while its key ends and host2 gets the region."""
    with rig.borrow("host2") as second:
        key = rig.key
        for _ in range(20):
            started = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                writing = pool.submit(write_until_refused, rig.after_refusal(), key, started)
                assert started.wait(DEADLINE_SECONDS)
                rig.lender.revoke(key)
                next_key = rig.lender.export(rig.region, "host2")
                assert isinstance(writing.result(DEADLINE_SECONDS), KeyRevoked)
            assert second.read(next_key, 0, SIZE) == bytes(SIZE)
            rig.lender.revoke(next_key)
            key = rig.lender.export(rig.region, "host1")


def write_until_refused(link: Link, key: Key, started: threading.Event) -> AccessRefused:
    """Fill a region again and again; returns the refusal."""
    data = b"\xff" * SIZE
    try:
        while True:
            link.write(key, 0, data)
            started.set()
    except AccessRefused as error:
        return error


def test_a_region_is_given_back_only_without_keys(rig: Rig) -> None:
    with pytest.raises(InUse, match="revoke them first"):
        rig.lender.deregister(rig.region)
    rig.link.write(rig.key, 0, b"still there")
    rig.lender.revoke(rig.key)
    assert rig.lender.deregister(rig.region) is True
    assert rig.lender.deregister(rig.region) is False
    with pytest.raises(NotFound, match="deregistered"):
        rig.lender.export(rig.region, "host1")


@pytest.mark.parametrize("size", [0, -PAGE, PAGE + 1])
def test_a_region_is_whole_pages(rig: Rig, size: int) -> None:
    with pytest.raises(BadRequest, match=f"{PAGE} bytes"):
        rig.lender.register(size)


def test_forgetting_twice_and_coming_back(rig: Rig) -> None:
    rig.link.write(rig.key, 0, b"kept")
    rig.link.forget(rig.key)
    rig.link.forget(rig.key)
    assert rig.link.read(rig.key, 0, 4) == b"kept"


def test_tickets_and_keys_cross_json(rig: Rig) -> None:
    ticket = rig.lender.admit("host1")
    assert Ticket.from_dict(ticket.to_dict()) == ticket
    assert Key.from_dict(rig.key.to_dict()) == rig.key
    assert "secret" not in repr(ticket)
    assert "token" not in repr(rig.key)
