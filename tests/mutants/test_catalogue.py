"""The list cannot rot: each fault can be planted in the tree as it is, and each test that is to catch it exists."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant, NotPlanted, chosen, planted, problems
from tests.mutants.runner import ROOT

GOOD = Mutant("no_more", "pool.py", "return 1", "return 2", ("test_pool.py::test_one",), "it would be two")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pool.py").write_text("def one():\n    return 1\n")
    (tmp_path / "test_pool.py").write_text("from pool import one\n\n\ndef test_one():\n    assert one() == 1\n")
    return tmp_path


def test_every_mutant_can_be_planted() -> None:
    assert problems(MUTANTS, ROOT) == []


def test_each_says_why_and_is_in_no_test() -> None:
    assert all(mutant.why and "/tests/" not in f"/{mutant.file}" for mutant in MUTANTS)


def test_a_good_list_has_no_problems(tree: Path) -> None:
    assert problems([GOOD], tree) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"old": "return 3"}, "stands 0 times"),
        ({"old": "one"}, "listed"),
        ({"old": "n"}, "stands 2 times"),
        ({"file": "gone.py"}, "No such file"),
        ({"new": "return ("}, "never closed"),
        ({"new": "return 1"}, "changes nothing"),
        ({"tests": ()}, "no test is to catch it"),
        ({"tests": ("test_pool.py::test_two",)}, "there is no test test_pool.py::test_two"),
        ({"tests": ("test_gone.py",)}, "there is no test test_gone.py"),
    ],
)
def test_what_has_rotted_is_told(tree: Path, change: dict[str, object], problem: str) -> None:
    found = problems([GOOD, GOOD] if problem == "listed" else [replace(GOOD, **change)], tree)  # type: ignore[arg-type]
    assert len(found) == 1
    assert problem in found[0]


def test_a_fault_in_c_compiles(tmp_path: Path) -> None:
    """Else each test that builds the file would catch it."""
    (tmp_path / "pool.c").write_text("int one(void)\n{\n    return 1;\n}\n")
    (tmp_path / "test_pool.py").write_text("def test_one():\n    pass\n")
    good = replace(GOOD, file="pool.c")
    assert problems([good], tmp_path) == []
    (problem,) = problems([replace(good, new="return two")], tmp_path)
    assert "undeclared" in problem


def test_nothing_is_planted_in_two_places() -> None:
    with pytest.raises(NotPlanted, match="stands 2 times"):
        planted(GOOD, "return 1 if now else return 1")


@pytest.mark.parametrize("files", [[], ["agent"], ["agent/"], ["agent/pool.py", "rdma"]])
def test_mutants_are_chosen_by_file_and_folder(files: list[str]) -> None:
    listed = [replace(GOOD, file=file) for file in ("agent/pool.py", "agent2/pool.py", "rdma/pool.py")]
    wanted = {"agent": 1, "agent/": 1, "agent/pool.py": 2}[files[0]] if files else 3
    assert len(chosen(listed, files)) == wanted


def test_a_file_without_mutants_is_told() -> None:
    with pytest.raises(ValueError, match="no mutant is planted in bench"):
        chosen([GOOD], ["pool.py", "bench"])
