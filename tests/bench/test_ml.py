"""The evaluation of models on a generated trace of VM-hours (synthetic, in the public format), and what it refuses."""

import csv
import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from bench.ml import __main__ as bench
from bench.ml import bitbrains, evaluation, rules

COLUMNS = ("month", "vm_file", "epoch_hour", "cores", "mem_cap_mb", "mem_used_max_mb")
VMS = 100
BEGIN = 1_700_000_000 // 3600


def _write(path: Path, *, steady: bool) -> None:
    """Write 5 weeks of VMs; `steady`: each uses its own share, else any at any time."""
    chance = random.Random(3)
    with gzip.open(path / bitbrains.FILE, "wt", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for number in range(VMS):
            memory, used = chance.choice((4096, 8192, 16384)), chance.uniform(0.1, 0.8)
            for day in range(5 * 7):
                today = used if steady else chance.uniform(0.1, 0.95)
                for hour in range(24):
                    share = min(today + chance.gauss(0, 0.01), 1.0)
                    rows.writerow((1, number, (BEGIN + day * 24 + hour) * 3600, 2, memory, share * memory))


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steady")
    _write(path, steady=True)
    return path


def test_training_and_test_are_disjoint_and_training_is_earlier(steady: Path) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    assert len(trace.starts) == 5 * VMS
    for split in evaluation.splits(trace, 3, 1, history=True):
        assert max(item.ended_at for item in split.train) <= min(item.example.as_of for item in split.test)
        assert not {item.request.project_id for item in split.train} & {f"1/{item.number}" for item in split.test}
        assert all(item.example.history for item in split.test)
        assert all(record.seen_at <= item.example.as_of for item in split.test for record in item.example.history)


def test_what_was_forgotten_is_unknown_to_the_rules(steady: Path) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    split = evaluation.forgotten(evaluation.splits(trace, 1, 1, history=False)[0])
    assert not any(item.example.history for item in split.test)
    assert set(rules.last_week("week_p5")(split.train)([item.example for item in split.test])) == {0.0}


def test_a_curve_is_the_share_of_over_predictions() -> None:
    """Two VMs of 4 GiB: at 25 % UM one of them gets 2 GiB, of which it left 1."""
    swept = evaluation.Swept(
        ["a", "b"],
        np.array([4096.0, 4096.0]),
        np.array([[0.0, 2048.0, 2048.0], [0.0, 0.0, 2048.0]]),
        np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]),
    )
    found = evaluation.curve([swept], 50, 1)
    assert found.at(25.0) == pytest.approx(50.0)
    assert found.at(50.0) == pytest.approx(100.0)
    low, high = found.interval(50.0)
    assert low <= 100.0 <= high


def test_the_targets_hold_where_the_past_tells_the_future(
    steady: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(steady), "--plots", str(tmp_path), "--splits", "2", "--draws", "20"]
    assert bench.main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "OK: both targets hold"
    assert "at 33 % UM" in printed[-2]
    assert {path.name for path in tmp_path.iterdir()} == {
        "with-history.svg",
        "without-history.svg",
        "ablation.svg",
    }


def test_the_targets_do_not_hold_where_it_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path, steady=False)
    words = ["--data", str(tmp_path), "--plots", str(tmp_path), "--splits", "1", "--draws", "5"]
    assert bench.main(words) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "FAILED: a target does not hold"


def test_what_is_no_trace_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--data", str(tmp_path)]) == 2
    assert "make bench-ml DATA=folder" in capsys.readouterr().err
    with gzip.open(tmp_path / bitbrains.FILE, "wt") as file:
        file.write("month,vm_file\n7,1\n")
    assert bench.main(["--data", str(tmp_path)]) == 2
    assert "line 2" in capsys.readouterr().err
