"""Some hundred histories of the whole system in one thread, with every kind of fault."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.histories import run_all
from tests.sim.plan import KINDS, draw
from tests.sim.report import command
from tests.sim.run import run

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = 200
CHUNK = 50


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_no_history_violates_anything(first: int) -> None:
    faults, acknowledged = run_all(draw, range(first, first + CHUNK))
    assert acknowledged > CHUNK
    assert len(faults) >= len(KINDS)
    assert faults["host offlines slowly"]


def test_the_same_seed_takes_the_same_turns() -> None:
    """Also in another process, whose strings have other hashes."""
    code = "import tests.sim.plan as p, tests.sim.run as r; print(*r.run(p.draw(7), tracing=True).trace, sep='\\n')"
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "agent"))
    traces = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        traces.append(done.stdout)
    here = run(draw(7), tracing=True).trace
    assert traces[0] == traces[1] == "\n".join(here) + "\n"
    assert len(here) > 20


def test_the_command_tells_its_figures_last_and_how_to_replay() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--histories", "4", "--seed", "3", "--processes", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert command(3) in done.stdout
    assert done.stdout.splitlines()[-1] == "violations: 0"
