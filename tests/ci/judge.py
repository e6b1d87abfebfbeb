"""Whether a test run is good: the one decision of CI. Pure.

A run is good when nothing failed and as many tests ran as the floor says. If it is not, and all that failed may meet a
stall (mark `faults`), and each of them met one, and they are few, then they run once more, alone. A test that was
excused twice in the last runs that needed it is not excused: it has a fault of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_RERUN = 3
"""So many failing tests may be a stall's; more are not."""

ENTRIES = 10
"""So many of the newest entries of the file of reruns count."""

TWICE = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """`rerun`: the tests to run once more, alone; without any the run is `good` or not, for `reason`."""

    good: bool
    reason: str
    rerun: tuple[str, ...] = ()


def judge(outcomes: Mapping[str, Any], history: Sequence[Mapping[str, Any]], floor: int) -> Verdict:
    """Return what to do after a run. `outcomes`: as tests.fixtures.outcomes writes; `history`: the file of reruns."""
    ran = outcomes["passed"] + outcomes["failed"]
    failures = outcomes["failures"]
    if not failures:
        if ran < floor:
            return Verdict(False, f"{ran} tests ran, and {floor} is the floor: what became of the others?")
        return Verdict(True, f"{ran} tests passed")
    if plain := [failure["test"] for failure in failures if not failure["faults"]]:
        return Verdict(False, f"not marked `faults`: {', '.join(plain)}")
    if calm := [failure["test"] for failure in failures if not failure["stalled_seconds"]]:
        return Verdict(False, f"met no stall: {', '.join(calm)}")
    if len(failures) > MOST_RERUN:
        return Verdict(False, f"{len(failures)} tests failed; {MOST_RERUN} at most are taken for a stall's")
    tests = tuple(failure["test"] for failure in failures)
    if again := excused_before(tests, history):
        return Verdict(False, f"excused before, so that it has a fault of its own: {', '.join(again)}")
    return Verdict(False, f"each of {', '.join(tests)} met a stall", tests)


def excused_before(tests: Sequence[str], history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tests that would stand twice in the newest entries, this run's included."""
    recent = list(history)[-(ENTRIES - 1) :]
    counts = Counter(test for entry in recent for test in {failure["test"] for failure in entry["tests"]})
    return [test for test in tests if counts[test] + 1 >= TWICE]


def entry(outcomes: Mapping[str, Any], *, date: str, commit: str, passed: bool) -> dict[str, Any]:
    """Return what the file of reruns keeps of a run whose failures ran once more."""
    tests = [
        {"test": item["test"], "stalled_seconds": round(item["stalled_seconds"], 1)} for item in outcomes["failures"]
    ]
    return {"date": date, "commit": commit, "tests": tests, "second": "passed" if passed else "failed"}
