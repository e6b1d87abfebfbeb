"""The evaluation of models on a generated trace of VM-hours (synthetic, in the public format), and what it refuses."""

import csv
import gzip
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.ml import __main__ as bench
from bench.ml import bitbrains, combined, evaluation, folds, nested, report, rules, shapes, tuning
from bench.ml.bitbrains import HOUR
from pondstack.domain.share import untouched_mib
from pondstack.prediction.balance import Point
from pondstack.prediction.untouched import MARGINS, less

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


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few folds and settings: what is tested is not how many there are, and each is a training."""
    monkeypatch.setattr(folds, "OUTER", 3)
    monkeypatch.setattr(folds, "INNER", 2)
    model = rules.Family({"quantile 0.25, 4 leaves": rules.model()}, rules.SHAPES[:2])
    small = {report.PERCENTILE: bench.PERCENTILES, report.MODEL: model}
    for name, families in {"FULL": small, "SMALL": small, "COLD": {report.MODEL: model}}.items():
        monkeypatch.setattr(bench, name, families)
    monkeypatch.setattr(bench, "ABLATION", {"without any history": rules.HISTORY})
    monkeypatch.setattr(rules, "QUANTILES", (0.25,))
    monkeypatch.setattr(rules, "LEAVES", (4,))


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("steady"), steady=True)


def test_each_later_start_is_judged_once_by_others_before(steady: Path) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    assert len(trace.starts) == 5 * VMS
    found = folds.outer(trace, 1, history=True)
    tested = [(item.number, item.example.as_of) for fold in found for item in fold.test]
    assert len(tested) == len(set(tested)) == 2 * VMS
    for fold in found:
        assert max(item.example.ended_at for item in fold.train) <= min(item.example.as_of for item in fold.test)
        assert not {item.number for item in fold.train} & {item.number for item in fold.test}
        assert all(item.example.history for item in fold.test)
        assert all(record.seen_at <= item.example.as_of for item in fold.test for record in item.example.history)


def test_what_chooses_the_settings_has_seen_nothing_of_what_is_judged(steady: Path) -> None:
    trace = bitbrains.load(steady / bitbrains.FILE)
    for fold in folds.outer(trace, 1, history=True):
        dealt = folds.inner(fold, 1, history=True)
        kept = [item for part in dealt for item in part.test]
        assert {item.number for item in kept} == {item.number for item in fold.train}
        seen = [*kept, *(item for part in dealt for item in part.train)]
        assert not {item.number for item in seen} & {item.number for item in fold.test}
        assert max(item.example.ended_at for item in seen) <= fold.until


def test_a_choice_is_the_same_whatever_the_judged_starts_are(steady: Path) -> None:
    """Other labels in the tests of a fold change its result, and neither its settings nor its margins."""
    fold, *_ = folds.outer(bitbrains.load(steady / bitbrains.FILE), 1, history=True)
    lies = [replace(item, example=replace(item.example, share=0.0)) for item in fold.test]
    families = rules.Family({name: rules.percentile(name) for name in rules.PERCENTILES}, rules.SHAPES)
    one, other = (
        nested.judge(families, [some], 1, history=True) for some in (fold, folds.Outer(fold.train, lies, fold.until))
    )
    assert [(item.name, item.shape) for item in one.settings] == [(item.name, item.shape) for item in other.settings]
    assert np.array_equal(one.swept.pool, other.swept.pool)
    assert one.swept.over.sum() < other.swept.over.sum()


def test_a_fold_that_trains_on_a_judged_vm_fails(steady: Path) -> None:
    fold, *_ = folds.outer(bitbrains.load(steady / bitbrains.FILE), 1, history=True)
    known = replace(fold.train[0], number=fold.test[0].number)
    with pytest.raises(folds.Leak, match=f"VM {known.number} is in training and in test"):
        folds.Outer([*fold.train, known], fold.test, fold.until)
    late = replace(fold.train[0], example=replace(fold.train[0].example, ended_at=fold.test[-1].example.as_of + HOUR))
    with pytest.raises(folds.Leak, match="when training has ended"):
        folds.Outer([*fold.train, late], fold.test, fold.until)
    early = replace(fold.test[0], example=replace(fold.test[0].example, as_of=fold.until - HOUR))
    with pytest.raises(folds.Leak, match="a test of VM"):
        folds.Outer(fold.train, [early], fold.until)


def test_a_number_is_one_vm_in_all_months(steady: Path) -> None:
    """Another month may have another machine of that number, or the same one: it is never on both sides."""
    trace = bitbrains.load(steady / bitbrains.FILE)
    other = [
        replace(item, example=replace(item.example, request=replace(item.example.request, project_id="2/0")))
        for item in trace.starts
    ]
    for fold in folds.outer(replace(trace, starts=[*trace.starts, *other]), 1, history=True):
        assert not {item.number for item in fold.train} & {item.number for item in fold.test}


def test_what_was_forgotten_is_unknown_to_the_rules(steady: Path) -> None:
    fold, *_ = folds.outer(bitbrains.load(steady / bitbrains.FILE), 1, history=False)
    assert not any(item.example.history for item in [*fold.test, *fold.train])
    assert set(rules.percentile("week_p5")(fold.train)(fold.test)) == {0.0}


def test_the_margin_in_force_is_the_one_of_production(steady: Path) -> None:
    starts = bitbrains.load(steady / bitbrains.FILE).starts[-3:]
    facts = shapes.Facts.of(starts)
    left = shapes.Shape().left(np.full(len(starts), 0.7), facts)
    given = shapes.pool(left, facts.memory)
    for item, values, some in zip(starts, left, given, strict=True):
        mib = item.example.request.memory_mib
        wanted = [less(0.7, margin, mib, item.spread) for margin in reversed(MARGINS)]
        assert values == pytest.approx(wanted)
        assert list(some) == [untouched_mib(value, mib, 1024) for value in values]


@pytest.mark.usefixtures("few")
def test_settings_are_compared_on_all_vms(steady: Path) -> None:
    lines: list[str] = []
    assert tuning.main(["--data", str(steady)], lines.append) == 0
    assert any(line.strip().startswith("in force") for line in lines)
    assert len(lines) == 2 + (len(rules.models()) + len(rules.PERCENTILES)) * len(rules.SHAPES)


def _words(data: Path, plots: Path) -> list[str]:
    return ["--data", str(data), "--plots", str(plots), "--draws", "20"]


def test_a_curve_is_the_share_of_over_predictions() -> None:
    """Two VMs of 4 GiB: at 25 % UM one of them gets 2 GiB, of which it left 1."""
    swept = evaluation.Swept(
        ["a", "b"],
        np.array([4096.0, 4096.0]),
        np.array([[0.0, 2048.0, 2048.0], [0.0, 0.0, 2048.0]]),
        np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]),
    )
    found = evaluation.curve(swept, 50, 1)
    assert found.at(25.0) == pytest.approx(50.0)
    assert found.at(50.0) == pytest.approx(100.0)
    low, high = found.interval(50.0)
    assert low <= 100.0 <= high


@pytest.mark.usefixtures("few")
def test_the_targets_hold_where_the_past_tells_the_future(
    steady: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(_words(steady, tmp_path)) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "OK: both targets hold"
    assert "at 33 % UM" in printed[-2]
    assert any(line.startswith("took ") and "of CPU" in line for line in printed)
    assert any(line.startswith("with history, without the VM of 16 GiB") for line in printed)
    assert {path.name for path in tmp_path.iterdir()} == {
        "with-history.svg",
        "without-history.svg",
        "ablation.svg",
        "combined.svg",
    }


@pytest.mark.usefixtures("few")
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
    ("vms", "weeks", "told"), [(VMS, 2, "covers 2 whole weeks; at least 3"), (9, 3, "9 VMs to test"), (52, 3, "")]
)
def test_a_trace_of_another_size_is_measured_or_told_to_be_too_small(
    vms: int, weeks: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, steady=True, vms=vms, weeks=weeks)
    found = folds.too_small(bitbrains.load(tmp_path / bitbrains.FILE))
    assert (bool(found), told in found) == (bool(told), True)
    if told:
        assert bench.main(_words(tmp_path, tmp_path)) == 2
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
