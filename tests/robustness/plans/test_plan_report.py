"""The report of deaths in plans: steps by name, and a verdict that no broken promise and no unmet step escapes."""

import json
from dataclasses import replace
from pathlib import Path

from tests.robustness.plans.plan import PLANS_JUDGED, STEPS, make_plan
from tests.robustness.plans.report import Outcome, Run, missed, save, text

OUTCOMES = [Outcome(kill, "p", "a service", "done", "", 40.0) for kill in make_plan(1, PLANS_JUDGED)]
RUN = Run(1, PLANS_JUDGED, OUTCOMES, (), 3600.0)


def changed(number: int, **changes: object) -> Run:
    outcomes = list(OUTCOMES)
    outcomes[number] = replace(outcomes[number], **changes)
    return replace(RUN, outcomes=outcomes)


def test_a_run_in_which_all_holds() -> None:
    assert missed(RUN) == []
    lines = text(RUN).splitlines()
    assert lines[-1] == "OK: every target holds"
    for step in STEPS:
        assert any(line.startswith(f"{step.name} ") for line in lines)


def test_what_is_made_up_is_called_so() -> None:
    assert "SYNTHETIC" in text(RUN)
    assert "EMULATED" in text(RUN)


def test_a_broken_promise_fails_the_run() -> None:
    run = changed(3, broken=("host1 lends 64 MiB",))
    assert missed(run) == ["1 plans broke a promise, target 0"]
    assert "FAILED" in text(run)


def test_what_is_left_over_fails_the_run() -> None:
    assert missed(replace(RUN, unclean=("host1 sleeps",))) == ["1 leftovers at the end, target 0"]


def test_a_death_that_did_not_meet_its_step_fails_a_whole_run_only() -> None:
    run = changed(0, end="")
    kill = OUTCOMES[0].kill
    assert missed(run) == [f"'{kill.step.name}' was not met by a death of: {kill.victim}"]
    assert missed(replace(run, count=1, outcomes=run.outcomes[:1])) == []


def test_a_run_that_ended_early_says_so() -> None:
    run = replace(RUN, count=4, outcomes=OUTCOMES[:3])
    assert missed(run) == ["ended early: 3 of 4 plans"]


def test_what_nova_left_is_told_by_name() -> None:
    assert "  server s in ERROR" in text(changed(1, left_by_nova=("server s in ERROR",))).splitlines()


def test_a_report_is_saved(tmp_path: Path) -> None:
    save(RUN, tmp_path / "new")
    assert (tmp_path / "new" / "report.txt").read_text() == text(RUN) + "\n"
    assert len(json.loads((tmp_path / "new" / "report.json").read_text())["outcomes"]) == PLANS_JUDGED
