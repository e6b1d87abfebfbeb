"""The evaluation of models of latency sensitivity on made-up samples, which it says, and what it refuses."""

from pathlib import Path

import pytest

from bench.ml import latency as bench
from pondstack.prediction import latency_forest
from pondstack.prediction.latency import Case
from pondstack.prediction.sample_generator import generate
from pondstack.prediction.samples import gather
from tests.fixtures import samples


def test_halves_are_disjoint_and_equal() -> None:
    workloads = gather(generate(41)).workloads
    for train, test in bench.halves(workloads, 5, 1):
        assert not {item.name for item in train} & {item.name for item in test}
        assert (len(train), len(test)) == (20, 21)
    assert bench.halves(workloads, 2, 1)[0] != bench.halves(workloads, 2, 1)[1]


def test_false_positives_are_of_all_workloads() -> None:
    """Ten of twenty are sensitive and predicted last: none is marked wrongly up to 50 % LI, half of all at 100 %."""
    cases = [Case(float(place), 0.0 if place < 10 else 50.0) for place in range(20)]
    found = bench.false_positives(cases)
    assert found[bench.LEVELS.index(50.0)] == 0.0
    assert found[bench.LEVELS.index(75.0)] == pytest.approx(25.0)
    assert found[bench.LEVELS.index(100.0)] == pytest.approx(50.0)


def test_every_figure_says_that_it_is_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(latency_forest.SETTINGS, "n_estimators", 10)
    code = bench.main(["--plots", str(tmp_path), "--splits", "2"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == ("OK: both targets hold" if code == 0 else "FAILED: a target does not hold")
    assert all(line.startswith("SYNTHETIC (158 made-up runs)") for line in printed[-4:-1])
    assert "SYNTHETIC (158 made-up runs), 2 splits by workload" in (tmp_path / "latency.svg").read_text()


def test_too_few_and_unreadable_samples_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--samples", str(tmp_path / "none")]) == 2
    assert bench.main(["--samples", str(samples.write(tmp_path / "few", 12))]) == 2
    told = capsys.readouterr().err
    assert "No such file" in told
    assert "12 workloads are too few" in told
