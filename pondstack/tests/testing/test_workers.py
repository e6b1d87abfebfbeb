"""Tests side by side: what belongs together stays together, and what they tell arrives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pondstack.testing import tiers, workers

CONFTEST = """
import os
import pytest
from pondstack.testing import workers

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.when == "call":
        workers.tell(report, "figure", [f"{item.name} in {os.environ['PYTEST_XDIST_WORKER']}"])
    return report
"""
TESTS = """
import pytest

@pytest.mark.{tier}
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    pass
"""


def _run(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  rack: r\n  unit: u\n")
    (folder / "conftest.py").write_text(CONFTEST)
    kept = {name: value for name, value in os.environ.items() if name not in {"CI", tiers.VARIABLE}}
    kept = {name: value for name, value in kept.items() if not name.startswith("PYTEST_XDIST")}
    plugins = ("-p", "pondstack.testing.tiers", "-p", "pondstack.testing.workers", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", "-n", "2", *plugins, "."]
    return subprocess.run(command, cwd=folder, env=kept | variables, capture_output=True, text=True, check=False)


def test_a_folder_that_shares_stays_in_one_worker_and_what_is_told_arrives(tmp_path: Path) -> None:
    folder = tmp_path / "tests/rack"
    folder.mkdir(parents=True)
    for name in ("test_one.py", "test_two.py"):
        (folder / name).write_text(TESTS.format(tier="rack"))
    done = _run(tmp_path)
    assert done.returncode == 0, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("test_it")]
    assert len(told) == 8
    assert len({line.rpartition(" ")[2] for line in told}) == 1
    assert done.stdout.index("figures of emulated hosts") < done.stdout.index("test_it[0] in")


def test_a_module_that_skips_itself_fails_in_a_worker_too(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text("import pytest\npytest.importorskip('there_is_no_such_module')\n")
    done = _run(tmp_path, CI="true")
    assert done.returncode != 0, done.stdout
    assert "no tier may skip" in done.stdout


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/rack/test_a.py::test_b[c]", "tests/rack/"),
        ("tests/hardware/test_a.py::test_b", "tests/hardware/"),
        ("pondstack/tests/rack/test_a.py::TestB::test_c", "pondstack/tests/rack/test_a.py"),
    ],
)
def test_the_group_of_a_test(test: str, group: str) -> None:
    assert workers.group_of(test) == group


def test_the_long_ones_begin_first_and_the_rest_keeps_its_order() -> None:
    assert workers.longest_first(["unit", "hardware", "unit", "rack", "functional"]) == [1, 3, 4, 0, 2]
