"""The ledger's benchmark runs, alternates, and gives its verdict by its exit code."""

import subprocess
import sys

import pytest

from bench import ledger


def test_rounds_alternate_and_each_thread_gets_its_share() -> None:
    calls: list[tuple[str, int]] = []
    mine, its = ledger.compare(
        lambda thread: calls.append(("ours", thread)), lambda thread: calls.append(("theirs", thread)), 2, 4, rounds=3
    )
    assert len(mine) == len(its) == 3
    warm_up, rounds = calls[:4], [calls[start : start + 4] for start in range(4, len(calls), 4)]
    assert len(warm_up) == 4
    assert [who for who, *_ in (item[0] for item in rounds)] == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert all(sorted(thread for _, thread in part) == [0, 0, 1, 1] for part in rounds)


@pytest.mark.functional
def test_the_benchmark_runs_on_real_servers() -> None:
    command = [sys.executable, "-m", "bench.ledger", "--rounds", "1", "--cycles", "4", "--threads", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert "least median ratio" in done.stdout.splitlines()[-1], done.stdout + done.stderr
    assert done.returncode == (0 if done.stdout.splitlines()[-1].startswith("OK") else 1)
