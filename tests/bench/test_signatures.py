"""`make bench-signatures` in small: it measures two racks of which one signs, and its exit code is its verdict."""

import subprocess
import sys

import pytest

from bench import signatures


@pytest.mark.parametrize(("signed", "held"), [([100.0, 98.0, 90.0], True), ([80.0, 100.0, 94.0], False)])
def test_the_median_decides(signed: list[float], held: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert signatures.report(signed, [100.0, 100.0, 100.0]) is held
    assert capsys.readouterr().out.splitlines()[-1].startswith("OK" if held else "FAILED")


@pytest.mark.functional
@pytest.mark.night  # two racks are started for four guests: a minute of CPU time
def test_the_benchmark_runs_on_real_servers() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "bench.signatures", "--rounds", "1", "--cycles", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    assert last.startswith(("OK", "FAILED")), done.stdout + done.stderr
    assert done.returncode == (0 if last.startswith("OK") else 1)
