"""What a quarantine's cause is, read and written; and that nothing but its reading looks at the reason."""

import ast
import re
from pathlib import Path

import pytest

import pondstack
from pondstack.domain import causes
from pondstack.domain.causes import Cause, Stored, failure_detail, stored
from pondstack.domain.states import SliceState

ASIDE = SliceState.QUARANTINED


@pytest.mark.parametrize("cause", Cause)
def test_a_reason_begins_with_its_cause(cause):
    assert cause.reason("h1: silent") == f"{cause}: h1: silent"
    assert stored(ASIDE, None, None, cause.reason("h1: silent")) == (cause, None)


def test_which_failure_of_a_device_it_was():
    reason = Cause.DEVICE_FAILED.reason(failure_detail(12, "pool0: silent"))
    assert stored(ASIDE, None, None, reason) == Stored(Cause.DEVICE_FAILED, 12)
    assert stored(ASIDE, "device_failed", 12, reason) == Stored(Cause.DEVICE_FAILED, 12)


@pytest.mark.parametrize(
    ("cause", "reason", "wanted"),
    [
        ("agent_lost", "agent_down: x", Cause.AGENT_DOWN),
        ("agent_lost", "agent_down", Cause.AGENT_DOWN),
        ("agent_lost", "x", Cause.AGENT_LOST),
        ("agent_lost", "", Cause.AGENT_LOST),
        ("melted", "x", Cause.UNKNOWN),
        (None, "agent_downstairs: x", Cause.UNKNOWN),
        (None, "x", Cause.UNKNOWN),
        (None, "", None),
    ],
)
def test_the_reason_is_believed_before_the_column(cause, reason, wanted):
    assert stored(ASIDE, cause, None, reason) == (wanted, None)


@pytest.mark.parametrize("state", sorted(set(SliceState) - {ASIDE}))
def test_what_is_not_quarantined_has_no_cause(state):
    assert stored(state, "agent_down", 1, "device_failed: failure 1 of pool0") == (None, None)


def test_every_cause_says_what_it_is():
    body = ast.parse(Path(causes.__file__).read_text()).body
    listed = next(node for node in body if isinstance(node, ast.ClassDef))
    members = [isinstance(node, ast.Assign) for node in listed.body]
    texts = [isinstance(node, ast.Expr) for node in listed.body]
    assert sum(members) == len(Cause)
    assert all(texts[place + 1] for place, is_member in enumerate(members) if is_member)


def test_nothing_decides_by_a_reason():
    looks = re.compile(r"\breason(\.(startswith|partition|split|find|removeprefix)\(| *==)|\bin \w+\.reason\b")
    paths = [path for path in Path(pondstack.__file__).parent.rglob("*.py") if "tests" not in path.parts]
    assert {path.name for path in paths if looks.search(path.read_text())} == {"causes.py", "0009_cause.py"}
