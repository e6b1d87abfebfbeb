"""The evaluation of models on a generated trace of VM-hours (synthetic, in the public format), and what it refuses."""

import csv
import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from bench.ml import __main__ as bench
from bench.ml import bitbrains, combined, evaluation, parts, rules
from pondstack.prediction.balance import Point

COLUMNS = ("month", "vm_file", "epoch_hour", "cores", "mem_cap_mb", "mem_used_max_mb")
VMS = 60
BEGIN = 1_700_000_000 // 3600


def _write(path: Path, *, steady: bool, vms: int = VMS, weeks: int = 5) -> Path:
    """Write some weeks of VMs; `steady`: each uses its own share, else any at any time."""
    chance = random.Random(3)
    with gzip.open(path / bitbrains.FILE, "wt", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for number in range(vms):
            memory, used = chance.choice((4096, 8192, 16384)), chance.uniform(0.1, 0.8)
            for day in range(weeks * 7):
                today = used if steady else chance.uniform(0.1, 0.95)
                for hour in range(24):
                    share = min(today + chance.gauss(0, 0.01), 1.0)
                    rows.writerow((1, number, (BEGIN + day * 24 + hour) * 3600, 2, memory, share * memory))
    return path


@pytest.fixture(autouse=True)
def insensitive(monkeypatch: pytest.MonkeyPatch) -> combined.Insensitive:
    """A curve in place of that of a forest, which takes seconds to train."""
    found = combined.Insensitive([Point(25.0, 0.9), Point(40.0, 3.0)], "made up for this test")
    monkeypatch.setattr(bench, "insensitivity", lambda _samples: found)
    return found


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("steady"), steady=True)


def test_training_and_test_are_disjoint_and_training_is_earlier(steady: Path) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    assert len(trace.starts) == 5 * VMS
    (part,) = parts.parts(trace)
    found = parts.folds(trace, part, 1, history=True)
    for fold in found:
        assert max(item.ended_at for item in fold.train) <= min(item.example.as_of for item in fold.test)
        assert not {item.request.project_id for item in fold.train} & {f"1/{item.number}" for item in fold.test}
        assert all(item.example.history for item in fold.test)
        assert all(record.seen_at <= item.example.as_of for item in fold.test for record in item.example.history)
    tested = [(item.number, item.example.as_of) for fold in found for item in fold.test]
    assert len(tested) == len(set(tested)) == 2 * VMS


def test_what_settings_were_chosen_on_is_apart_from_what_is_judged(
    steady: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    monkeypatch.setattr(parts, "TUNED_ON", trace.sha256)
    tuning, _whole, held = parts.parts(trace)
    assert tuning.tested == tuning.seen == {str(number) for number in range(VMS) if parts.is_tuning(str(number))}
    assert held.tested == {str(number) for number in range(VMS)} - tuning.tested
    chosen = {item.request.project_id for fold in parts.folds(trace, tuning, 1, history=True) for item in fold.train}
    assert not chosen & {f"1/{number}" for number in held.tested}
    two = {name: bench.FULL[name] for name in (bench.STATIC, bench.MODEL)}
    for name, makers in {"FULL": two, "COLD": {}, "ABLATION": {}}.items():
        monkeypatch.setattr(bench, name, makers)
    assert bench.main(_words(steady, tmp_path)) == 0
    printed = capsys.readouterr().out
    assert printed.index("== TUNING part") < printed.index("== HELD-OUT part")
    assert printed.splitlines()[-4].startswith("HELD-OUT part")


def test_what_was_forgotten_is_unknown_to_the_rules(steady: Path) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    (part,) = parts.parts(trace)
    (fold, *_) = parts.folds(trace, part, 1, history=False)
    assert not any(item.example.history for item in fold.test)
    assert set(rules.last_week("week_p5")(fold.train)([item.example for item in fold.test])) == {0.0}


def _words(data: Path, plots: Path) -> list[str]:
    return ["--data", str(data), "--plots", str(plots), "--repeats", "1", "--draws", "20"]


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
    assert bench.main(_words(steady, tmp_path)) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "OK: both targets hold"
    assert "at 33 % UM" in printed[-2]
    assert {path.name for path in tmp_path.iterdir()} == {
        "with-history.svg",
        "without-history.svg",
        "ablation.svg",
        "combined.svg",
    }


def test_the_targets_do_not_hold_where_it_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path, steady=False)
    assert bench.main(_words(tmp_path, tmp_path)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "FAILED: a target does not hold"


def test_what_is_no_trace_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--data", str(tmp_path)]) == 2
    assert "make bench-ml DATA=folder" in capsys.readouterr().err
    with gzip.open(tmp_path / bitbrains.FILE, "wt") as file:
        file.write("month,vm_file\n7,1\n")
    assert bench.main(["--data", str(tmp_path)]) == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("vms", "weeks", "told"), [(VMS, 1, "covers 1 whole weeks; at least 2"), (9, 3, "9 VMs to test"), (52, 2, "")]
)
def test_a_trace_of_another_size_is_measured_or_told_to_be_too_small(
    vms: int, weeks: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, steady=True, vms=vms, weeks=weeks)
    assert (bench.main(_words(tmp_path, tmp_path)) == 2) is bool(told)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("bad", ["nan", "-1", "inf", "many"])
def test_what_is_no_amount_is_told(bad: str, tmp_path: Path) -> None:
    with gzip.open(tmp_path / bitbrains.FILE, "wt") as file:
        file.write(",".join(COLUMNS) + f"\n7,1,3600,2,4096,{bad}\n")
    with pytest.raises(bitbrains.BadTrace, match="line 2"):
        bitbrains.load(tmp_path / bitbrains.FILE)


def test_a_file_that_ends_too_early_is_told(steady: Path, tmp_path: Path) -> None:
    whole = (steady / bitbrains.FILE).read_bytes()
    (tmp_path / bitbrains.FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(bitbrains.BadTrace, match="broken"):
        bitbrains.load(tmp_path / bitbrains.FILE)


def test_the_curve_to_combine_with_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(bench, "WORKLOADS", 60)
    found = bench.insensitivity(None)
    assert found.data.startswith("SYNTHETIC")
    assert max(point.gain for point in found.points) > 0


def test_both_models_together_give_more_within_the_same_budget(insensitive: combined.Insensitive) -> None:
    untouched = [Point(20.0, 1.0), Point(30.0, 1.9)]
    text = combined.told(insensitive, untouched)
    assert "UM alone 30.0 %" in text
    assert "both 45.0 % (LI 25.0 % at FP 0.90 %, UM 20.0 % at OP 1.00 %); LI of made up" in text
    pairs = list(zip(combined.BUDGETS, combined.frontier(insensitive.points, untouched), strict=True))
    assert all(item.loss <= budget for budget, item in pairs)
    assert [item.gain for _, item in pairs] == sorted(item.gain for _, item in pairs)
