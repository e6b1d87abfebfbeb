"""Each row of doc/source/user/server-actions.md names tests, and they exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "source" / "user" / "server-actions.md"
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """Return the cells of all rows."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| shown by |" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names_in(path: Path) -> set[str]:
    """Return the names of a file's tests."""
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_each_action_names_tests_that_exist() -> None:
    found = rows()
    assert len(found) > 20
    missing = []
    for action, what, shown in found:
        named = TEST.findall(shown)
        assert what, action
        assert named, action
        missing += [f"{action}: {file}::{name}" for file, name in named if name not in names_in(ROOT / file)]
    assert missing == []


def test_no_action_stands_there_twice() -> None:
    actions = [action for action, *_ in rows()]
    assert len(actions) == len(set(actions))
