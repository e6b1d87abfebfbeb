"""Each complaint of doc/source/contributor/watcher-complaints.md names tests that exist, and each is there."""

import ast
import re
from pathlib import Path

from tests.docs.test_security_page import missing, rows
from tests.docs.test_server_actions import TEST

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "source" / "contributor" / "watcher-complaints.md"
TESTS = ROOT / "pondstack" / "tests" / "consolidation" / "test_watcher_complaints.py"
BUGS = ("2156473", "2113776", "2126767")
WORDS = ("SUCCEEDED", "Ironic or MaaS", "chance", "dry run", "rate limit", "off switch")


def table() -> list[list[str]]:
    """Return the rows without their head."""
    return [row for row in rows(PAGE.read_text()) if row[0] != "complaint"]


def test_each_complaint_names_tests_that_exist() -> None:
    for complaint, here, shown in table():
        assert here, complaint
        assert TEST.findall(shown), complaint
        assert missing(shown) == [], complaint


def test_each_complaint_is_there_once() -> None:
    told = [row[0] for row in table()]
    for word in (*BUGS, *WORDS):
        assert len([text for text in told if word in text]) == 1, word
    assert len(told) == len(BUGS) + len(WORDS)


def test_each_test_of_a_complaint_is_in_the_table() -> None:
    named = set(re.findall(r"test_watcher_complaints\.py::(\w+)", PAGE.read_text()))
    functions = [node for node in ast.parse(TESTS.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert {function.name for function in functions if function.name.startswith("test_")} == named
