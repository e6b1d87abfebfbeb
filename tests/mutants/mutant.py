"""A planted fault: a wrong text in the place of a right one, and the tests that must catch it."""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `old` stands exactly once in `file`; `tests` are node ids of pytest; `why`: what would happen."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str


class NotPlanted(Exception):
    """The old text is not found exactly once."""


def planted(mutant: Mutant, text: str) -> str:
    """Return a file's text with the fault in it; raises NotPlanted."""
    found = text.count(mutant.old)
    if found != 1:
        raise NotPlanted(f"its old text stands {found} times in {mutant.file}; bring the list up to date")
    return text.replace(mutant.old, mutant.new)


def problems(mutants: Sequence[Mutant], root: Path) -> list[str]:
    """Return what is wrong with a list: texts that moved, faults that are no code or change nothing, lost tests."""
    names = [mutant.name for mutant in mutants]
    found = [f"{name}: listed {names.count(name)} times" for name in sorted(set(names)) if names.count(name) > 1]
    for mutant in mutants:
        try:
            text = planted(mutant, (root / mutant.file).read_text())
            _check_syntax(text, root / mutant.file)
        except (NotPlanted, OSError, SyntaxError) as error:
            found.append(f"{mutant.name}: {error}")
        if mutant.old == mutant.new:
            found.append(f"{mutant.name}: it changes nothing")
        if not mutant.tests:
            found.append(f"{mutant.name}: no test is to catch it")
        found += [f"{mutant.name}: there is no test {test}" for test in mutant.tests if not _exists(root, test)]
    return found


def _check_syntax(text: str, path: Path) -> None:
    """Raise SyntaxError for what is no Python or, in a file of C, what does not compile: each test would catch that."""
    if path.suffix != ".c":
        compile(text, str(path), "exec")
        return
    command = ["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(command, cwd=path.parent, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SyntaxError(done.stderr)


def _exists(root: Path, test: str) -> bool:
    """Return whether the file of a node id has a function, or a class, of its name."""
    file, *parts = test.partition("[")[0].split("::")
    path = root / file
    if not path.is_file():
        return False
    text = path.read_text()
    return all(re.search(rf"(?:def {part}\(|class {part}\b|^{part} = )", text, re.MULTILINE) for part in parts)


def chosen(mutants: Iterable[Mutant], files: Sequence[str]) -> list[Mutant]:
    """Return the mutants of some files and folders, all when none is named; raises ValueError for one without any."""
    mutants = list(mutants)
    for name in files:
        if not any(_lies(mutant.file, name) for mutant in mutants):
            raise ValueError(f"no mutant is planted in {name}")
    return [mutant for mutant in mutants if not files or any(_lies(mutant.file, name) for name in files)]


def _lies(file: str, name: str) -> bool:
    return file == name or file.startswith(f"{name.rstrip('/')}/")
