"""What becomes of a mutant: caught, missed, or nothing can be said; and the tree itself stays as it is."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants import runner
from tests.mutants.mutant import Mutant
from tests.mutants.runner import TestsDidNotRun, Tree, Verdict, judge_all

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
TESTS = """
import pool

def test_one():
    assert pool.one() == 1
    assert "pond-mutants-" in pool.__file__

def test_nothing():
    pool.two()
"""
CAUGHT = Mutant("one", "pool.py", "return 1", "return 7", ("test_pool.py::test_one",), "one would be seven")
MISSED = Mutant("two", "pool.py", "return 2", "return 7", ("test_pool.py::test_nothing",), "two would be seven")
BROKEN = Mutant("import", "pool.py", "def two", "1 / 0\n\n\ndef two", ("test_pool.py",), "nothing would start")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small tree in the place of this one."""
    (tmp_path / "pool.py").write_text(CODE)
    (tmp_path / "test_pool.py").write_text(TESTS)
    (tmp_path / ".hidden").mkdir()
    monkeypatch.setattr(runner.Tree.__init__, "__defaults__", (tmp_path,))
    yield tmp_path
    assert (tmp_path / "pool.py").read_text() == CODE


def test_verdicts_come_in_order_and_say_who_caught_it(source: Path) -> None:
    """A mutant that keeps pytest from running is not caught by that."""
    del source
    caught, missed, broken = judge_all([CAUGHT, MISSED, BROKEN])
    assert (caught.caught, missed.caught, broken.caught) == (True, False, False)
    assert str(caught) == "caught  one (pool.py): test_pool.py::test_one"
    assert str(missed) == "MISSED  two (pool.py): two would be seven"
    assert "ZeroDivisionError" in broken.trouble


def test_without_any_mutant_the_tests_must_pass(source: Path) -> None:
    (source / "test_pool.py").write_text("def test_one():\n    assert False\n")
    with pytest.raises(TestsDidNotRun, match="fails without any mutant"):
        list(judge_all([CAUGHT]))


def test_a_copy_is_as_it_was_after_each_mutant_and_gone_at_the_end(source: Path) -> None:
    with Tree(source) as tree:
        assert sorted(path.name for path in tree.root.iterdir()) == ["pool.py", "test_pool.py"]
        assert tree.judge(CAUGHT).caught
        assert (tree.root / "pool.py").read_text() == CODE
    assert not tree.root.exists()


@pytest.fixture
def listed(source: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """The command's list, of which `one` is caught without running anything."""
    made: list[Mutant] = []
    monkeypatch.setattr(command, "MUTANTS", made)
    monkeypatch.setattr(command, "ROOT", source)
    judge = lambda mutants, _workers: (Verdict(mutant, by=mutant.name.replace("two", "")) for mutant in mutants)  # noqa: E731
    monkeypatch.setattr(command, "judge_all", judge)
    return made


@pytest.mark.parametrize(
    ("mutants", "code", "last"),
    [
        ([CAUGHT], 0, "1 mutants: 1 caught, 0 missed"),
        ([CAUGHT, MISSED], 1, "2 mutants: 1 caught, 1 missed"),
        ([CAUGHT, replace(MISSED, old="return 3")], 2, "two: its old text stands 0 times in pool.py"),
    ],
)
def test_the_command_exits_with_what_it_found(listed, capsys, mutants, code, last) -> None:
    listed += mutants
    assert command.main([]) == code
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)


def test_the_command_takes_files(listed, capsys) -> None:
    listed += [CAUGHT, replace(MISSED, file="gone.py")]
    assert command.main(["pool.py"]) == 0
    assert command.main(["bench"]) == 2
    assert "no mutant is planted in bench" in capsys.readouterr().out


def test_the_command_tells_that_tests_fail_by_themselves(listed, capsys, monkeypatch) -> None:
    def fails(*_arguments: object) -> None:
        raise TestsDidNotRun("test_one fails without any mutant")

    monkeypatch.setattr(command, "judge_all", fails)
    listed.append(CAUGHT)
    assert command.main([]) == 2
    assert capsys.readouterr().out == "test_one fails without any mutant\n"
