"""The table of doc/source/admin/controller.md has each finding of the reconciler, with its severity, in order."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "doc" / "source" / "admin" / "controller.md"


def _code(node: ast.expr) -> str:
    """Return the code in a call's first argument; `*` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    assert isinstance(node, ast.Constant), ast.unparse(node)
    return str(node.value)


def raised() -> Iterator[tuple[str, str]]:
    """Return (code, severity) of every finding that the code makes."""
    for path in (ROOT / "pondstack" / "controller").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                severity = node.args[1]
                assert isinstance(severity, ast.Attribute), ast.unparse(node)
                yield _code(node.args[0]), severity.attr.lower()


def test_each_finding_is_documented_with_its_severity() -> None:
    rows = re.findall(
        r"^\| `([a-z_*]+)` \| (info|warning|critical) \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) > 40
    assert sorted(rows) == sorted(set(raised()))


def test_the_table_is_in_the_order_of_the_alphabet() -> None:
    codes = [code.rstrip("*") for code in re.findall(r"^\| `([a-z_*]+)` \|", PAGE.read_text(), re.MULTILINE)]
    assert codes == sorted(codes)
