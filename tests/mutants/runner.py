"""Plants mutants in a copy of the tree, one at a time, and runs the tests that must catch them there."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from tests.mutants.mutant import Mutant, planted

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (".", "api", "agent", "rdma", "nova_plugins", "tempest_tests", "rack")
"""Folders of the tree from which Python imports; the copy's come before those of the installed checkout."""

PASSED, FAILED = 0, 1
"""pytest's exit codes when all tests ran."""

_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "reports", "*.sample")


class TestsDidNotRun(Exception):
    """pytest has neither passed nor failed: nothing can be said of a mutant."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one mutant fared. `by`: the test that caught it, "" when none did; `trouble`: why nothing can be said."""

    mutant: Mutant
    by: str = ""
    trouble: str = ""

    @property
    def caught(self) -> bool:
        """Whether a test failed because of it."""
        return bool(self.by)

    def __str__(self) -> str:
        about = f"{self.mutant.name} ({self.mutant.file})"
        if self.caught:
            return f"caught  {about}: {self.by}"
        return f"MISSED  {about}: {self.trouble or self.mutant.why}"


class Tree:
    """A copy of the tree. The checkout is never changed, whatever happens here."""

    def __init__(self, source: Path = ROOT) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pond-mutants-")
        # Agents of tests become another user, who reads their code here.
        Path(self._folder.name).chmod(0o755)
        self.root = Path(self._folder.name, "tree")
        try:
            shutil.copytree(source, self.root, ignore=_LEFT_OUT)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._folder.cleanup()

    def judge(self, mutant: Mutant) -> Verdict:
        """Plant a mutant, run its tests, and take it out again."""
        path = self.root / mutant.file
        plain = path.read_text()
        path.write_text(planted(mutant, plain))
        try:
            failed = self.test(mutant.tests)
        except TestsDidNotRun as error:
            return Verdict(mutant, trouble=str(error))
        finally:
            path.write_text(plain)
        return Verdict(mutant, by=failed)

    def test(self, tests: Sequence[str]) -> str:
        """Run tests until one fails; returns its name, "" when all passed. Raises TestsDidNotRun."""
        words = ["-x", "-q", "-n", "0", "-W", "ignore", "-p", "no:cacheprovider", "--timeout", "120"]
        done = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", *words, *tests],
            cwd=self.root,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == PASSED:
            return ""
        failed = re.search(r"^FAILED (.+?)(?: - |$)", done.stdout, re.MULTILINE)
        if done.returncode != FAILED or failed is None:
            raise TestsDidNotRun(f"pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        return failed.group(1)

    def _environment(self) -> dict[str, str]:
        folders = [str(self.root / package) for package in PACKAGES]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "NIGHT": ""}


def judge_all(mutants: Sequence[Mutant], workers: int = 2) -> Iterator[Verdict]:
    """Yield what becomes of each mutant, in their order. Raises TestsDidNotRun when tests fail without any."""
    with ExitStack() as stack:
        trees: SimpleQueue[Tree] = SimpleQueue()
        first = stack.enter_context(Tree())
        trees.put(first)
        for _ in range(min(workers, len(mutants)) - 1):
            trees.put(stack.enter_context(Tree()))
        tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        if failed := first.test(tests):
            raise TestsDidNotRun(f"{failed} fails without any mutant")

        def judge(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                return tree.judge(mutant)
            finally:
                trees.put(tree)

        yield from stack.enter_context(ThreadPoolExecutor(workers)).map(judge, mutants)
