"""The report of deaths in live migrations: victims by name, and a verdict that nothing amiss escapes."""

from dataclasses import replace

from tests.robustness.moves.plan import MOVES_JUDGED, Victim, make_plan
from tests.robustness.moves.report import Outcome, Run, missed, text


def run_of(count: int = MOVES_JUDGED) -> Run:
    outcomes = [Outcome(kill, "a server", "a service", "moved") for kill in make_plan(1, count)]
    return Run(1, count, outcomes, (), 60.0)


def test_a_run_in_which_all_holds() -> None:
    lines = text(run_of()).splitlines()
    assert lines[-1] == "OK: every target holds"
    for victim in Victim:
        assert any(line.startswith(f"{victim} ") for line in lines)
    assert any("QEMU without KVM" in line for line in lines), "what it ran on is said"


def test_a_broken_promise_fails_the_run() -> None:
    run = run_of()
    first, *rest = run.outcomes
    found = missed(replace(run, outcomes=[replace(first, broken=("two hosts run it",)), *rest]))
    assert found == ["1 moves broke a promise, target 0"]


def test_leftovers_an_early_end_and_somebody_who_was_not_met_fail_the_run() -> None:
    run = run_of()
    assert missed(replace(run, unclean=("a mirror",))) == ["1 leftovers at the end, target 0"]
    assert "ended early" in missed(replace(run, outcomes=run.outcomes[:-1]))[0]
    unmet = [replace(item, end="") if item.kill.victim is Victim.LEADER else item for item in run.outcomes]
    assert missed(replace(run, outcomes=unmet)) == ["'leading controller' was met 0 times, target 2"]
