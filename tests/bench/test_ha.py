"""The benchmark of the mirror runs on real servers and gives its verdict by its exit code."""

import subprocess
import sys

import pytest


@pytest.mark.functional
def test_the_benchmark_runs_on_a_mirrored_database() -> None:
    options = ["--rounds", "1", "--cycles", "4", "--threads", "2", "--database", "postgresql"]
    command = [sys.executable, "-W", "ignore", "-m", "bench.ha", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    last = done.stdout.splitlines()[-1]
    assert last.startswith(("OK", "FAILED")), done.stdout + done.stderr
    assert done.returncode == (0 if last.startswith("OK") else 1)
    assert "one operation" in done.stdout
