"""A short run of each seeded fuzzer; `make security MINUTES=5 SEED=1` is a long one of all."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import seeds
from tests.security.fuzzers.api_requests import ApiRequests
from tests.security.fuzzers.targets import TARGETS, attacked

ROOT = Path(__file__).resolve().parents[2]
STEPS = {
    "api": 140,
    "state-files": 100,
    "wire-values": 600,
    "hostile-host": 150,
    "sockets": 200,
    "traces": 12,
    "native-code": 0,
    "block-devices": 10,
}
"""Of `api`: each operation in each way. rdma/tests runs native code with sanitizers and the same odd calls."""


def test_each_target_has_a_short_run() -> None:
    assert set(STEPS) == set(TARGETS)
    assert STEPS["api"] >= ApiRequests(1).all_steps


def test_the_command_runs_them_and_prints_its_figures_last() -> None:
    command = [sys.executable, "-m", "tests.security", "--only", "wire-values", "--steps", "20", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, row, last = done.stdout.splitlines()
    assert row.startswith("wire-values ")
    assert last.startswith("ok: ")


@pytest.mark.parametrize("name", [name for name in STEPS if STEPS[name]])
def test_nothing_wrong_is_accepted_and_nothing_crashes(name: str) -> None:
    seed = seeds.seed(1)
    print(f"make security ONLY={name} STEPS={STEPS[name]} SEED={seed} runs it alone")
    found = attacked(name, seed, STEPS[name])
    assert not found.wrong, "\n".join(found.wrong[:3])
    assert found.counts["refused"] > 0
    assert found.counts["accepted"] > 0
