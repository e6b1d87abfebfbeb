"""Whole runs of a small suite, judged: what fails in a stall runs once more, alone; all else fails the run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ci import __main__ as ci
from tests.fixtures import outcomes

CONFTEST = """
import time
import pytest
from tests.fixtures import stalls

pytest_plugins = ["tests.fixtures.stalls", "tests.fixtures.outcomes"]

@pytest.fixture
def stall():
    now = time.monotonic()
    stalls.WITNESS._stalls.append(stalls.Stall(now - 2.0, now))
"""
TESTS = """
import pathlib
import pytest
import testtools

@pytest.mark.unit
def test_unit():
    pass

@pytest.mark.faults
@pytest.mark.db
def test_once(stall):
    seen = pathlib.Path("seen")
    if not seen.exists():
        seen.write_text("")
        raise AssertionError

@pytest.mark.faults
@pytest.mark.db
def test_always(stall):
    raise AssertionError

@pytest.mark.db
def test_unmarked(stall):
    raise AssertionError

@pytest.mark.faults
@pytest.mark.db
def test_calm():
    raise AssertionError

class TestLogged(testtools.TestCase):
    @pytest.mark.db
    def test_logged(self):
        self.addDetail("log", testtools.content.text_content("a\\n" * 50))
        raise ValueError("no room")
"""
INI = "[pytest]\nmarkers =\n  unit: u\n  db: d\n  faults: f\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "reruns.json").write_text("[]\n")
    for name in [name for name in os.environ if name.startswith("PYTEST")] + ["CI"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.setenv("WORKERS", "0")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # of all that is installed, this suite needs one
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    monkeypatch.setattr(ci, "ROOT", tmp_path)
    monkeypatch.setattr(ci, "RERUNS", tmp_path / "tests" / "reruns.json")
    monkeypatch.setattr(ci, "FLOOR", 2)
    return tmp_path


def judged(suite: Path, *tests: str) -> tuple[int, list[Any]]:
    """Return the exit code of a run of some tests, and the file of reruns after it."""
    chosen = " or ".join(("test_unit", *tests))
    code = ci.main(["-q", "-p", "no:cacheprovider", "-k", chosen])
    return code, json.loads((suite / "tests" / "reruns.json").read_text())


def test_what_a_stall_failed_and_passes_alone_is_good(suite: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, entries = judged(suite, "test_once")
    assert code == 0
    assert [item["test"] for item in entries[0]["tests"]] == ["test_it.py::test_once"]
    assert entries[0]["second"] == "passed"
    assert capfd.readouterr().out.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


def test_what_fails_alone_too_fails_the_run(suite: Path) -> None:
    code, entries = judged(suite, "test_always")
    assert code == 1
    assert entries[0]["second"] == "failed"


@pytest.mark.parametrize("name", ["test_unmarked", "test_calm"])
def test_nothing_else_runs_twice(suite: Path, name: str) -> None:
    assert judged(suite, "test_once", name) == (1, [])


def test_a_test_that_needs_it_again_has_a_fault_of_its_own(suite: Path) -> None:
    assert judged(suite, "test_once")[0] == 0
    (suite / "seen").unlink()
    code, entries = judged(suite, "test_once")
    assert code == 1
    assert len(entries) == 1


@pytest.mark.parametrize(("name", "why"), [("test_calm", "AssertionError"), ("test_logged", "ValueError: no room")])
def test_what_it_failed_on_is_told_at_the_end(
    suite: Path, capfd: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    judged(suite, name)
    told = next(
        line
        for line in capfd.readouterr().out.splitlines()
        if line.startswith("FAILED test_it.py") and name in line and line.endswith(why)
    )
    assert told


def test_a_run_that_does_not_come_to_its_end_fails(suite: Path) -> None:
    (suite / "test_it.py").write_text("import there_is_no_such_module\n")
    assert judged(suite)[0] == 1


def test_too_few_tests_fail_the_run(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "FLOOR", 3)
    (suite / "seen").write_text("")
    assert judged(suite, "test_once")[0] == 1


def test_the_outcomes_come_from_workers_too(suite: Path) -> None:
    path = suite / "outcomes.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-k", "always or unit"]
    environment = {**os.environ, outcomes.VARIABLE: str(path)}
    subprocess.run(command, cwd=suite, env=environment, capture_output=True, check=False)
    found = json.loads(path.read_text())
    assert (found["passed"], found["failed"]) == (1, 1)
    assert found["failures"][0]["faults"] is True
    assert found["failures"][0]["stalled_seconds"] > 0
    assert list(found["seconds"]) == ["."]
    assert found["seconds"]["."] > 0
