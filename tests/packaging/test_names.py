"""Names on the doors: retired ones stay away."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .conftest import ROOT, Root
from .tracked import tracked

NAMES = Path(__file__).with_name("retired_names.txt")
HISTORY = ("releasenotes/notes/", "tests/packaging/retired_names.txt")
"""What tells of the past in the past's words."""


def _retired() -> dict[str, str]:
    lines = (line for line in NAMES.read_text().splitlines() if line and not line.startswith("#"))
    return {old: new for old, new in (line.split() for line in lines)}


def _is_module(name: str) -> bool:
    return "." in name and "/" not in name


def _folder(module: str, roots: dict[str, str]) -> str:
    top, *rest = module.split(".")
    return "/".join([roots.get(top, top), *rest])


def _texts() -> Iterator[tuple[str, str]]:
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(HISTORY):
            try:
                yield name, path.read_text()
            except UnicodeDecodeError:
                continue


def test_no_retired_module_is_named(roots: list[Root]) -> None:
    """As a dotted name, or as a path: a reader who follows it would find nothing."""
    components = {root.name: root.folder.relative_to(ROOT).as_posix() for root in roots}
    modules = [name for name in _retired() if _is_module(name)]
    ways = [re.escape(name) for name in modules]
    ways += [re.escape(f"{_folder(name, components)}.py") for name in modules]
    # The look ahead is for speed: the long list is tried only where one of its first words stands.
    first = "|".join(sorted({re.escape(re.split(r"[./]", name)[0]) for name in (*modules, *components.values())}))
    names = "|".join(sorted(ways, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w./])(?=(?:{first})[./])(?:{names})(?![\w-])")
    assert not [name for name in modules if not pattern.search(f"see {name} and")]
    found = {f"{name}: {match}" for name, text in _texts() for match in pattern.findall(text)}
    assert not found, f"retired_names.txt says what they are called now: {sorted(found)}"


def test_no_retired_file_of_c_is_named() -> None:
    """As a path, or in its folder's texts by its last part alone."""
    names = sorted({re.escape(name.rpartition("/")[2]) for name in _retired() if "/" in name})
    pattern = re.compile(rf"(?<![\w./-])(?:rdma/native/)?(?:{'|'.join(names)})(?!\w)")
    found = {f"{name}: {match}" for name, text in _texts() for match in pattern.findall(text)}
    assert not found, f"retired_names.txt says what they are called now: {sorted(found)}"


def test_no_retired_class_is_named() -> None:
    """In code; prose may begin a sentence with such a word."""
    classes = {name for name in _retired() if "." not in name}
    found = set()
    for name, text in _texts():
        if name.endswith(".py"):
            nodes = ast.walk(ast.parse(text, name))
            found |= {f"{name}: {used}" for node in nodes if (used := _name(node)) in classes}
    assert not found, f"retired_names.txt says what they are called now: {sorted(found)}"


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.ClassDef(name=name) | ast.alias(name=name):
            return name
        case _:
            return ""


def test_retired_modules_are_gone(roots: list[Root]) -> None:
    components = {root.name: root.folder.relative_to(ROOT).as_posix() for root in roots}
    paths = [f"{_folder(old, components)}.py" for old in _retired() if _is_module(old)]
    paths += [old for old in _retired() if "/" in old]
    assert not [path for path in paths if (ROOT / path).exists()]
