"""What of the escrow a thief of the database has: nothing. And how sealing keys come and go."""

import base64
from dataclasses import replace

import pytest

from pondstack.controller.lending.sealing import KEY_BYTES, EscrowSealer, new_line
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.escrow import EscrowedKey

KEY = EscrowedKey("life-1", 3, "h2", 7)
CONTENT = {"ticket": {"secret": "5ec4e7"}, "key": {"token": "70ce4"}}
TEXT = base64.b64encode(bytes(KEY_BYTES)).decode()
OLD, NEW = {"old": bytes(KEY_BYTES)}, {"new": bytes(range(KEY_BYTES))}


def test_a_row_has_nothing_of_a_key_and_opens_again():
    sealed = EscrowSealer(OLD).seal(KEY, CONTENT)
    assert replace(sealed, sealing_key="", sealed="") == KEY
    plain = base64.b64decode(sealed.sealed)
    assert b"5ec4e7" not in plain
    assert b"70ce4" not in plain
    assert EscrowSealer(OLD).open(sealed) == CONTENT, "another controller, or the same one later"


def test_each_row_is_sealed_differently():
    sealer = EscrowSealer(OLD)
    assert len({sealer.seal(KEY, CONTENT).sealed for _ in range(20)}) == 20


@pytest.mark.parametrize("other", [{"borrower": "h3"}, {"index": 4}, {"incarnation": "life-2"}])
def test_a_row_in_the_place_of_another_one_does_not_open(other):
    """Who can write the database could have a host get a key that is another's."""
    sealed = EscrowSealer(OLD).seal(KEY, CONTENT)
    with pytest.raises(Unavailable, match="somebody changed its row"):
        EscrowSealer(OLD).open(replace(sealed, **other))


def test_a_generation_that_goes_on_changes_nothing():
    sealed = EscrowSealer(OLD).seal(KEY, CONTENT)
    assert EscrowSealer(OLD).open(replace(sealed, generation=8)) == CONTENT


@pytest.mark.parametrize("damage", ["", "*", "AAAA", base64.b64encode(bytes(64)).decode()])
def test_what_is_damaged_does_not_open(damage):
    sealed = EscrowSealer(OLD).seal(KEY, CONTENT)
    with pytest.raises(Unavailable):
        EscrowSealer(OLD).open(replace(sealed, sealed=damage))


def test_another_key_of_the_same_name_does_not_open():
    sealed = EscrowSealer(OLD).seal(KEY, CONTENT)
    with pytest.raises(Unavailable, match="the sealing key 'old'"):
        EscrowSealer({"old": bytes([1]) * KEY_BYTES}).open(sealed)


def test_keys_are_changed_in_steps():
    """First all controllers open with both, then all seal with the new one, then the old one goes."""
    first, both, turned, last = (EscrowSealer(keys) for keys in (OLD, OLD | NEW, NEW | OLD, NEW))
    sealed = first.seal(KEY, CONTENT)
    assert both.open(sealed) == CONTENT
    assert both.seal(KEY, CONTENT).sealing_key == "old"
    assert first.open(both.seal(KEY, CONTENT)) == CONTENT
    [anew] = turned.reseal([sealed])
    assert anew.sealing_key == "new"
    assert last.open(anew) == CONTENT
    with pytest.raises(Unavailable, match="'old', which this controller does not have"):
        last.open(sealed)
    assert last.reseal([sealed]) == []


def test_keys_come_from_a_file(tmp_path):
    path = tmp_path / "sealing-keys"
    path.write_text(f"# the newest first\n{new_line('2026-11')}\n\n{new_line('2025-11')}\n")
    path.chmod(0o600)
    sealer = EscrowSealer.load(path)
    assert sealer.name == "2026-11"
    assert EscrowSealer.load(path).open(sealer.seal(KEY, CONTENT)) == CONTENT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "one at the least"),
        ("name", "line 1"),
        ("name AAAA", "32 bytes"),
        (f"a {TEXT}\na {TEXT}", "line 2"),
        (f"-x {TEXT}", "line 1"),
        ("näme", "cannot be read"),
    ],
)
def test_a_file_that_is_none_says_where(tmp_path, text, why):
    path = tmp_path / "sealing-keys"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(BadRequest, match=why):
        EscrowSealer.load(path)


def test_a_file_that_others_read_is_refused(tmp_path):
    path = tmp_path / "sealing-keys"
    path.write_text(new_line("a"))
    path.chmod(0o640)
    with pytest.raises(BadRequest, match="chmod 600"):
        EscrowSealer.load(path)
    with pytest.raises(BadRequest, match="cannot be read"):
        EscrowSealer.load(tmp_path / "none")


def test_a_name_that_is_none_is_refused():
    with pytest.raises(BadRequest, match="letters"):
        new_line("two words")
