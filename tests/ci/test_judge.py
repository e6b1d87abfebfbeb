"""What excuses a failing test, and what does not."""

from typing import Any

import pytest

from tests.ci.judge import ENTRIES, entry, excused_before, judge

FLOOR = 10


def failure(name: str = "a", *, faults: bool = True, stalled_seconds: float = 2.0) -> dict[str, Any]:
    return {"test": name, "faults": faults, "stalled_seconds": stalled_seconds}


def outcomes(*failures: dict[str, Any], passed: int = 10) -> dict[str, Any]:
    return {"passed": passed, "failed": len(failures), "skipped": 0, "failures": list(failures)}


def history(*names: str) -> list[dict[str, Any]]:
    return [entry(outcomes(failure(name)), date="d", commit="c", passed=True) for name in names]


def test_all_passed() -> None:
    assert judge(outcomes(), [], FLOOR).good


def test_fewer_tests_than_the_floor_are_not_good() -> None:
    verdict = judge(outcomes(passed=9), [], FLOOR)
    assert (verdict.good, verdict.rerun) == (False, ())
    assert "floor" in verdict.reason


@pytest.mark.parametrize(
    ("failures", "text"),
    [
        ([failure("a"), failure("b", faults=False)], "not marked `faults`: b"),
        ([failure("a"), failure("b", stalled_seconds=0.0)], "met no stall: b"),
        ([failure(name) for name in "abcd"], "4 tests failed"),
    ],
)
def test_what_no_stall_excuses(failures: list[dict[str, Any]], text: str) -> None:
    verdict = judge(outcomes(*failures), [], FLOOR)
    assert (verdict.good, verdict.rerun) == (False, ())
    assert text in verdict.reason


def test_up_to_three_that_met_a_stall_run_once_more() -> None:
    verdict = judge(outcomes(*map(failure, "abc")), [], FLOOR)
    assert (verdict.good, verdict.rerun) == (False, ("a", "b", "c"))


def test_a_test_that_was_excused_lately_is_not_excused_again() -> None:
    verdict = judge(outcomes(failure("a"), failure("b")), history("b", "x"), FLOOR)
    assert (verdict.good, verdict.rerun) == (False, ())
    assert "a fault of its own: b" in verdict.reason


def test_old_excuses_are_forgotten() -> None:
    others = [str(number) for number in range(ENTRIES - 1)]
    assert excused_before(["a"], history("a", *others)) == []
    assert excused_before(["a"], history("a", *others[1:])) == ["a"]
