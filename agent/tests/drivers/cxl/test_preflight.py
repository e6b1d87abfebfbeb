"""Every pre-flight failure has a text, which says what to do, and a line in the docs."""

import string
from pathlib import Path

import pytest

from pondstack_agent.drivers.cxl.preflight import TEXTS, Failure, failed

DOC = Path(__file__).resolve().parents[4] / "doc" / "source" / "admin" / "cxl.md"


@pytest.mark.parametrize("failure", list(Failure))
def test_a_failure_has_a_text_a_code_and_a_line_in_the_docs(failure: Failure) -> None:
    fields = [name for _, name, _, _ in string.Formatter().parse(TEXTS[failure]) if name]
    error = failed(failure, **dict.fromkeys(fields, 7))
    assert error.message.endswith(f"[pre-flight: {failure.value}]")
    assert ";" in error.message  # what is the matter; what to do
    assert f"| `{failure.value}` |" in DOC.read_text()
