"""The lender's book, with tokens that a test chooses."""

from dataclasses import replace

import pytest

from pondstack_rdma import keyring
from pondstack_rdma.errors import KeyRevoked, UnknownKey, WrongBorrower
from pondstack_rdma.keyring import Keyring


def counting() -> Keyring:
    """A keyring whose tokens are 1, 2, 3."""
    numbers = iter(range(1, 10**6))
    return Keyring(lambda size: next(numbers).to_bytes(size, "big"))


def test_a_key_opens_its_region_for_its_borrower() -> None:
    ring = counting()
    first, second = ring.add(1, 4096, "host1"), ring.add(2, 8192, "host2")
    assert (ring.check("host1", first), ring.check("host2", second)) == (1, 2)
    assert ring.keys_of(1) == [first]
    assert list(ring) == [first, second]
    assert len(first.token) == 16


def test_a_number_is_never_used_again() -> None:
    ring = counting()
    first = ring.add(1, 4096, "host1")
    assert ring.remove(first) == 1
    assert ring.add(1, 4096, "host1").number != first.number


def test_what_is_refused_says_why() -> None:
    ring = counting()
    key = ring.add(1, 4096, "host1")
    with pytest.raises(WrongBorrower):
        ring.check("host2", key)
    for wrong in (replace(key, token=b""), replace(key, size_bytes=8192), replace(key, number=-1)):
        with pytest.raises(UnknownKey):
            ring.check("host1", wrong)
        assert ring.remove(wrong) is None
    ring.remove(key)
    with pytest.raises(KeyRevoked):
        ring.check("host1", key)
    with pytest.raises(UnknownKey):  # who has not the whole key is not told that it was one
        ring.check("host1", replace(key, token=bytes(16)))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "_REMEMBERED", 3)
    ring = counting()
    keys = [ring.add(1, 4096, "host1") for _ in range(5)]
    for key in keys:
        ring.remove(key)
    for key in keys[:2]:
        with pytest.raises(UnknownKey):
            ring.check("host1", key)
    for key in keys[2:]:
        with pytest.raises(KeyRevoked):
            ring.check("host1", key)


def test_who_is_dismissed_is_not_known_and_comes_back_with_another_secret() -> None:
    ring = counting()
    secret = ring.admit("host1")
    other, mine = ring.add(1, 4096, "host2"), ring.add(1, 4096, "host1")
    assert ring.keys_for("host1") == [mine]
    assert ring.dismiss("host1") is True
    assert ring.dismiss("host1") is False
    with pytest.raises(WrongBorrower):
        ring.check_borrower("host1", secret)
    assert ring.admit("host1") != secret
    assert ring.check("host2", other) == 1


def test_who_connects_shows_the_secret() -> None:
    ring = counting()
    secret = ring.admit("host1")
    assert ring.admit("host1") == secret
    ring.check_borrower("host1", secret)
    for borrower, wrong in (("host1", b""), ("host1", b"x" * 16), ("host2", secret), ("host2", b""), ("", b"")):
        with pytest.raises(WrongBorrower, match="new one"):
            ring.check_borrower(borrower, wrong)
