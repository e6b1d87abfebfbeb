"""The table counts what belongs to each fault, and the verdict names every target that does not hold."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.robustness import report
from tests.robustness.faults import KILL_LEADER
from tests.robustness.forged import Forge, sound
from tests.robustness.history import Injected
from tests.robustness.plan import LEAST_KILLS, Counts
from tests.robustness.run import Options, Result
from tests.robustness.validate import validate


def judged(forge: Forge, kills: int = LEAST_KILLS) -> tuple[Result, list[report.Row]]:
    """Return the result of a run that left a forged history: so many kills at one moment."""
    forge.history.faults[:] = [Injected(KILL_LEADER.name, 2.1)] * kills
    result = Result(Options(7, Counts(kills, 0, others=0)), forge.history, validate(forge.history), 6.0)
    return result, report.rows(result.history, result.broken)


def test_a_sound_run_holds_its_targets() -> None:
    result, table = judged(sound())
    kill, every = table
    assert (kill.runs, kill.acknowledged, kill.lost, kill.duplicated) == (5, 4, 0, 0)
    assert kill.resumes == pytest.approx((0.9,) * 5)
    assert every.acknowledged == 6
    assert report.missed(result, table) == []
    assert report.text(result, table).endswith("OK: every target holds")


def test_a_lost_operation_is_counted_under_its_fault() -> None:
    forge = sound()
    forge.forget("assign-b")
    result, table = judged(forge)
    assert table[0].lost == 1
    assert "1 operations lost, target 0" in report.missed(result, table)
    assert "FAILED" in report.text(result, table)


def test_an_old_write_and_a_slow_return_miss_their_targets() -> None:
    forge = sound()
    forge.epoch = 1
    forge.entry("late", "acknowledge", {"slices": [], "moves": []})
    for operation_id in ("release-a", "assign-b", "acknowledge-b", "release-b"):
        forge.spoil(operation_id, ended=9.0)
    result, table = judged(forge)
    assert [text.partition(",")[0] for text in report.missed(result, table)] == [
        "1 writes from an old epoch",
        "median time to resume after kill -9 leader 6.90 s",
    ]


def test_too_few_kills_of_the_leader_alone_are_no_judgement() -> None:
    result, table = judged(sound(), LEAST_KILLS - 1)
    assert report.missed(result, table) == [
        "too few runs to judge the time to resume after kill -9 leader: 4, wanted 5",
    ]
    assert "FAILED: too few runs" in report.text(result, table)
    unwanted = replace(result, options=Options(7, Counts(0, 4, others=0)))
    assert report.missed(unwanted, table) == []


def test_a_run_that_ended_early_does_not_hold_its_targets() -> None:
    result, table = judged(sound())
    early = replace(result, options=Options(7, Counts(8, 0, others=0)))
    assert report.missed(early, table) == ["ended early: 5 of 8 faults"]


def test_a_report_is_saved_whole(tmp_path: Path) -> None:
    result, table = judged(sound())
    report.save(result, table, tmp_path)
    data = json.loads((tmp_path / "report.json").read_text())
    assert (data["seed"], data["table"][0]["runs"], data["missed"]) == (7, 5, [])
    assert data["faults"][0]["resume_seconds"] == pytest.approx(0.9)
    assert (tmp_path / "history.jsonl.gz").exists()
