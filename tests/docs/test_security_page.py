"""Each promise of doc/source/admin/security.md, and each finding of the review, names tests that exist."""

import re
from pathlib import Path

import pytest

from tests.docs.test_server_actions import TEST, names_in

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "source" / "admin" / "security.md"
FINDINGS = ROOT / "doc" / "source" / "contributor" / "security-findings.md"
ALL = [f"{kind}{number}" for kind, count in (("H", 3), ("M", 10), ("L", 13)) for number in range(1, count + 1)]
REASON = re.compile(r"no test: \S+ \S+ \S+")


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of tables that have something to show."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def missing(cell: str) -> list[str]:
    """Return the files and tests that a cell names and that do not exist."""
    files = [file for file in re.findall(r"`([\w/]+\.py)", cell) if not (ROOT / file).is_file()]
    return files or [name for file, name in TEST.findall(cell) if name not in names_in(ROOT / file)]


def test_each_promise_names_tests_that_exist() -> None:
    table = PAGE.read_text().split("## Promises")[1].split("\n## ")[0]
    found = [row for row in rows(table) if len(row) == 3 and "`" in row[2]]
    assert len(found) > 12
    for promise, _by, attacked in found:
        assert ".py" in attacked, promise
        assert missing(attacked) == [], promise


def test_each_finding_is_told_once() -> None:
    names = [row[0] for row in rows(FINDINGS.read_text()) if row[0] != "finding"]
    assert names == ALL


@pytest.mark.parametrize("name", ALL)
def test_each_finding_names_tests_that_fail_without_its_repair_or_says_why_not(name: str) -> None:
    (row,) = [row for row in rows(FINDINGS.read_text()) if row[0] == name]
    _name, what, now, shown = row
    assert len(what) > 40
    assert now
    assert TEST.findall(shown) or REASON.match(shown), shown
    assert missing(shown) == []


def test_what_misses_is_no_test() -> None:
    """The test of this page would see a test that was renamed, and a file that is gone."""
    assert missing("`tests/docs/test_security_page.py::test_each_finding_is_told_once`") == []
    assert missing("`tests/docs/test_security_page.py::test_each_finding_was_told`") == ["test_each_finding_was_told"]
    assert missing("`tests/docs/test_nothing.py::test_it`; `tests/docs/test_docs.py`") == ["tests/docs/test_nothing.py"]
