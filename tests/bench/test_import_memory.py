"""The peak of memory of an import, on a small file."""

import pytest

from bench.planner import import_memory


def test_it_holds_for_a_small_file_and_says_so_where_it_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_memory.main(["--gib", "0.001"]) == 0
    assert capsys.readouterr().out.startswith("HELD: 100,000 rows")
    assert import_memory.main(["--gib", "0.001", "--most-gib", "-1"]) == 1
    assert capsys.readouterr().out.startswith("MISSED: ")
