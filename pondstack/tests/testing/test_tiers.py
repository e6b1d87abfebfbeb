"""A skipped tier is seen: quietly on a laptop, as a failure where the tier is required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pondstack.testing import tiers

TESTS = """
import pytest

def test_unit():
    pass

@pytest.mark.rack
def test_rack():
    pytest.skip("no libvirt on this machine")

@pytest.mark.functional
@pytest.mark.xfail(reason="known")
def test_expected_failure():
    raise AssertionError
"""


def _run(folder: Path, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  rack: r\n  functional: f\n")
    kept = {name: value for name, value in os.environ.items() if name not in {"CI", tiers.VARIABLE}}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-ra",
        "-p",
        "pondstack.testing.tiers",
        "-p",
        "no:cacheprovider",
        ".",
    ]
    return subprocess.run(command, cwd=folder, env=kept | variables, capture_output=True, text=True, check=False)


def test_a_laptop_may_skip_a_tier(tmp_path: Path) -> None:
    done = _run(tmp_path, TESTS)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in done.stdout


@pytest.mark.parametrize("variables", [{"CI": "true"}, {tiers.VARIABLE: "unit, rack"}])
def test_a_required_tier_that_skips_fails_and_keeps_its_reason(tmp_path: Path, variables: dict[str, str]) -> None:
    done = _run(tmp_path, TESTS, **variables)
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed, 1 xfailed" in done.stdout
    assert "tier rack is required here" in done.stdout
    assert "no libvirt on this machine" in done.stdout


@pytest.mark.parametrize("names", ["unit,functional", ""])
def test_the_list_overrules_ci(tmp_path: Path, names: str) -> None:
    done = _run(tmp_path, TESTS, CI="true", PONDSTACK_REQUIRE_TIERS=names)
    assert done.returncode == 0, done.stdout


def test_a_module_that_skips_itself_fails_too(tmp_path: Path) -> None:
    text = "import pytest\npytest.importorskip('a_package_that_nobody_has')\n"
    assert _run(tmp_path, text).returncode == 5
    done = _run(tmp_path, text, CI="true")
    assert done.returncode == 2, done.stdout
    assert "a_package_that_nobody_has" in done.stdout


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="hardwear"):
        tiers.required_tiers({tiers.VARIABLE: "hardwear"})
