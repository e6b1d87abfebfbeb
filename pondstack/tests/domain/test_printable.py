"""Text of others is printable, or escaped."""

import re

import pytest

from pondstack.domain.printable import PRINTABLE, escaped, escaped_within


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("host-1.example", "host-1.example"),
        ("Zürich \u2013 東京", "Zürich \u2013 東京"),
        (r"C:\temp", r"C:\temp"),
        ("h1\n2026-11-25 ERROR forged", r"h1\n2026-11-25 ERROR forged"),
        ("\x1b[2Jh1\r", r"\x1b[2Jh1\r"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u2028b\u202ec\u2066", r"a\u2028b\u202ec\u2066"),
        ("\ud800", r"\ud800"),
        ("\U0001f600", r"\U0001f600"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, safe: str) -> None:
    assert escaped(text) == safe
    assert escaped(safe) == safe
    assert re.fullmatch(PRINTABLE, safe)
    assert bool(re.fullmatch(PRINTABLE, text)) is (text == safe)


def test_all_texts_in_a_value() -> None:
    value = {"a\n": ["b\x1b", 1, None, {"c": "d\r"}], "e": True}
    assert escaped_within(value) == {r"a\n": [r"b\x1b", 1, None, {"c": r"d\r"}], "e": True}
