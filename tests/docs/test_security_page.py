"""Each promise of doc/source/admin/security.md names tests, and they exist."""

import re
from pathlib import Path

from tests.docs.test_server_actions import TEST, names_in

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "source" / "admin" / "security.md"


def test_each_promise_names_tests_that_exist() -> None:
    table = PAGE.read_text().split("## Promises")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "`" in line]
    rows = [row for row in rows if len(row) == 3]
    assert len(rows) > 12
    for promise, _by, attacked in rows:
        files = re.findall(r"`([\w/]+\.py)", attacked)
        assert files, promise
        assert not [file for file in files if not (ROOT / file).is_file()], promise
        assert not [name for file, name in TEST.findall(attacked) if name not in names_in(ROOT / file)], promise
