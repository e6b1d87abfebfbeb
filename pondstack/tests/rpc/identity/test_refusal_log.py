"""What is refused again and again is logged once in a window, with the number of the others at its end."""

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pondstack.domain.errors import Refused, StaleMessage
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.callers import check
from pondstack.rpc.identity.credential import Authority
from pondstack.rpc.identity.freshness import Freshness
from pondstack.rpc.identity.identity import Identity
from pondstack.rpc.identity.issuer import Issuer
from pondstack.rpc.identity.refusal_log import RefusalLog, kind_of
from pondstack.rpc.targets import CONTROLLER_TOPIC

FORGED = "agent/h2 called release in the name of 'h1'"


@pytest.fixture
def window() -> Any:
    """A log, its lines, and how its window ends."""
    lines: list[str] = []
    ends: list[Callable[[], object]] = []
    seconds: list[float] = []

    def later(after: float, task: Callable[[], object]) -> None:
        seconds.append(after)
        ends.append(task)

    log = RefusalLog(lines.append, window_seconds=60.0, most_kinds=3, later=later)
    return SimpleNamespace(log=log, lines=lines, end=lambda: ends.pop()(), pending=ends, seconds=seconds)


def test_a_flood_makes_one_line_and_a_number(window: Any) -> None:
    for _ in range(1000):
        window.log.note(FORGED)
    assert window.lines == [FORGED]
    assert window.seconds == [60.0], "one timer"
    window.end()
    assert window.lines[1:] == [f"999 more messages within 60 s, like: {FORGED}"]


def test_what_came_once_is_not_counted_and_the_next_window_begins_anew(window: Any) -> None:
    window.log.note(FORGED)
    window.end()
    assert window.lines == [FORGED]
    assert window.pending == []
    window.log.note(FORGED)
    assert window.lines == [FORGED] * 2


def test_a_flood_hides_nobody_else(window: Any) -> None:
    for count in range(100):
        window.log.note(f"agent/h2 called release in the name of 'h{count}'")
    window.log.note("agent/h3 called release in the name of 'h1'")
    assert window.lines == [
        "agent/h2 called release in the name of 'h0'",
        "agent/h3 called release in the name of 'h1'",
    ]


def test_more_kinds_than_that_are_counted_together(window: Any) -> None:
    for name in ("a", "b", "c", "d", "e"):
        window.log.note(f"agent/{name} called it")
    assert window.lines == [f"agent/{name} called it" for name in ("a", "b", "c")]
    window.end()
    assert window.lines[3:] == ["2 more messages within 60 s, of further kinds"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("a message of agent/h1 was signed 61.2 s before", "a message of agent/h1 was signed 7 s before", True),
        ("a message of agent/h1 came twice", "a message of agent/h2 came twice", False),
        ("compute/10 called 'x'", "compute/11 called 'x'", False),
        ("api/a called 'x'", "api/a called 'it\\'s'", True),
        ("api/a called 'x'", 'api/a called "it\'s"', True),
        ("api/a called 'x', which nobody may", "api/a called 'y' and more", False),
    ],
)
def test_a_kind_has_the_party_and_the_reason_and_not_what_the_sender_chose(first: str, second: str, same: bool) -> None:
    assert (kind_of(first) == kind_of(second)) is same


@pytest.mark.parametrize("name", ["h1\nRefused by agent/h1: forged line", "h1' 'h2", 'h1" x', "\x1b[2J", 7, None])
def test_a_senders_words_are_one_kind_and_one_line(name: Any) -> None:
    with pytest.raises(Refused) as caught:
        check(CONTROLLER_TOPIC, "c1", "release", Identity.parse("agent/h2"), {"host": name})
    text = caught.value.message
    assert text.isprintable()
    assert kind_of(text) == kind_of(FORGED) or not isinstance(name, str)


def test_the_border_counts_all_of_them(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer.make()
    border = Border(
        issuer.issue(Identity.parse("agent/h1"), 1), Authority([issuer.certificate]), Freshness(60.0, lambda: 0.0)
    )
    counted: list[str] = []
    border.refused = counted.append
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            border.note(Refused(FORGED))
        border.note(StaleMessage("a message of agent/h2 was signed 61.0 s before it was read"))
    assert counted == ["pondstack.refused"] * 50 + [StaleMessage.code]
    assert [record.getMessage() for record in caplog.records] == [
        f"Refused by agent/h1: {FORGED}",
        "Refused by agent/h1: a message of agent/h2 was signed 61.0 s before it was read",
    ]
