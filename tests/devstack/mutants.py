"""Breaks the plugin line by line, in a copy: a story must differ from what is written down, or no test would notice."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.devstack.harness import HERE, ROOT, Scenario, expected, story
from tests.devstack.scenarios import SCENARIOS

FILES = (
    "plugin.sh",
    "settings",
    "lib/pondstack",
    "lib/pondstack-data-plane",
    "lib/pondstack-nova",
    "lib/pondstack-cloud",
)
# Structure of the shell, what only declares, what only tells, and ends of waiting: no stand-in can show these.
_KEPT = re.compile(
    r"(function|if|elif|else|fi|for|while|until|do|done|case|esac|local|source|define_plugin|unset|echo_summary|die|sleep|return"
    r"|user =|group =|security_driver|\$POND_QEMU|EOF|[{}:#|]|--|_XTRACE|\$_XTRACE|set \+o|$)"
)
_HERE = re.compile(r"<<EOF")


@dataclass(frozen=True)
class Mutant:
    """One statement of a file that does nothing any more: lines first to last, counted from 0."""

    file: str
    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.first + 1}: {self.text}"


def mutants() -> Iterator[Mutant]:
    """Yield a mutant for each statement that does something."""
    for name in FILES:
        lines = (ROOT / "devstack" / name).read_text().splitlines()
        number = 0
        while number < len(lines):
            first = number
            while lines[number].endswith("\\") or lines[number].endswith("|"):
                number += 1
            if _HERE.search(lines[number]):
                number = lines.index("EOF", number)
            elif "".join(lines[first : number + 1]).count('"') % 2:  # a text of several lines
                number = next(n for n in range(number + 1, len(lines)) if lines[n].count('"') % 2)
            if not _KEPT.match(lines[first].strip()):
                yield Mutant(name, first, number, lines[first].strip())
            number += 1


def survives(mutant: Mutant, scenarios: Sequence[Scenario] = SCENARIOS) -> bool:
    """Return whether all stories are as before and all other tests pass, although the statement is gone."""
    with tempfile.TemporaryDirectory(prefix="pond-mutant-") as folder:
        plugin = Path(folder) / "plugin"
        shutil.copytree(ROOT / "devstack", plugin / "devstack", ignore=shutil.ignore_patterns("tools", "samples"))
        shutil.copytree(ROOT / "etc", plugin / "etc")
        path = plugin / "devstack" / mutant.file
        lines = path.read_text().splitlines(keepends=True)
        lines[mutant.first : mutant.last + 1] = [":\n"]
        path.write_text("".join(lines))
        if subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False).returncode:
            return False
        same = (story(s, Path(folder) / s.name, plugin) == expected(s).read_text() for s in scenarios)
        return all(same) and _tests_pass(plugin)


def _tests_pass(plugin: Path) -> bool:
    words = ["-q", "-x", "-p", "no:cacheprovider", "-k", "not gone_is_noticed and not written_down"]
    command = [sys.executable, "-m", "pytest", *words, str(HERE / "test_phases.py")]
    environment = {**os.environ, "POND_PLUGIN": str(plugin)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(f"pytest could not run: {done.stdout}{done.stderr}")
    return done.returncode == 0


def survivors(chosen: Sequence[Mutant], workers: int = 2) -> list[Mutant]:
    """Return the mutants that no test notices."""
    with ThreadPoolExecutor(workers) as pool:
        return [mutant for mutant, alive in zip(chosen, pool.map(survives, chosen), strict=True) if alive]
