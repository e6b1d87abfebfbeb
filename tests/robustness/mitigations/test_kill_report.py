"""The report of kills in mitigations: steps by name, and a verdict that no broken promise and no unmet step escapes."""

from dataclasses import replace

from tests.robustness.mitigations.plan import STEPS, Place, make_plan
from tests.robustness.mitigations.report import Outcome, Run, missed, text


def run_of(count: int = 50) -> Run:
    """A run in which all went well."""
    outcomes = [Outcome(kill, "a server", "a service", "done") for kill in make_plan(1, count)]
    return Run(1, count, outcomes, (), 60.0)


def changed(run: Run, number: int, **changes: object) -> Run:
    """The run with one outcome that is otherwise."""
    outcomes = list(run.outcomes)
    outcomes[number] = replace(outcomes[number], **changes)
    return replace(run, outcomes=outcomes)


def test_a_run_in_which_all_holds() -> None:
    run = run_of()
    assert missed(run) == []
    lines = text(run).splitlines()
    assert lines[-1] == "OK: every target holds"
    for step in STEPS:
        assert any(line.startswith(f"{step.name} ") for line in lines)


def test_what_is_simulated_is_called_so() -> None:
    assert "fake computes" in text(run_of()) or "fake compute" in text(run_of())
    assert "stand-in" in text(run_of())


def test_a_broken_promise_fails_the_run() -> None:
    run = changed(run_of(), 3, broken=("the ledger still has it",))
    assert missed(run) == ["1 mitigations broke a promise, target 0"]
    assert "FAILED" in text(run)


def test_leftovers_and_an_early_end_fail_the_run() -> None:
    run = run_of()
    assert missed(replace(run, unclean=("a claim",))) == ["1 leftovers at the end, target 0"]
    assert missed(replace(run, count=51)) == ["ended early: 50 of 51 mitigations"]


def test_a_step_that_was_not_met_three_times_fails_a_whole_run_only() -> None:
    run = run_of()
    step = STEPS[2]
    mine = [number for number, item in enumerate(run.outcomes) if item.kill.step == step]
    for number in mine[2:]:
        run = changed(run, number, state="")
    assert missed(run) == [f"'{step.name}' was met 2 times, target 3"]
    short = run_of(5)
    assert missed(short) == []
    unmet = {item.name for item in STEPS} - {item.kill.step.name for item in short.outcomes}
    told = next(line for line in text(short).splitlines() if line.startswith("not met: "))
    assert set(told.removeprefix("not met: ").split("; ")) == unmet


def test_kills_that_did_not_meet_their_step_do_not_count() -> None:
    run = changed(run_of(), 0, state="")
    assert "49 kills met their step of 50" in text(run)


def test_real_guests_are_counted_apart() -> None:
    run = run_of()
    guests = sum(item.kill.place is Place.GUEST for item in run.outcomes)
    rows = [line.split(" | ") for line in text(run).splitlines() if line.startswith(("copy", "migrate"))]
    assert sum(int(row[2]) for row in rows) == guests
