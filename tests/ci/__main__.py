"""`python -m tests.ci`: runs all tests, unit tests first, judges the run, and tells its count last.

Exits 0 only when the run is good (tests.ci.judge). Arguments are pytest's.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.ci.judge import entry, judge
from tests.fixtures.nights import WHOLE_RUN
from tests.fixtures.outcomes import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
RERUNS = ROOT / "tests" / "reruns.json"
FLOOR = 6400
"""Fewer tests than this are not all of them."""

STAGES = ("unit", "not unit")
"""The quick ones answer first; what they find wrong ends the run."""

NO_BYTE_CODE = "PYTHONDONTWRITEBYTECODE"
"""Not for the run: with it each worker, and each of a thousand services, compiles our code and the tests again."""

NO_TESTS = 5
"""pytest's exit code when a selection is empty."""


def run(arguments: Sequence[str], workers: str) -> dict[str, Any]:
    """Run pytest; return its outcomes, {} when it did not come to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outcomes.json")
        command = [sys.executable, "-m", "pytest", "-n", workers, *arguments]
        environment = {name: value for name, value in os.environ.items() if name != NO_BYTE_CODE}
        done = subprocess.run(command, cwd=ROOT, env={**environment, WHOLE_RUN: "1", VARIABLE: str(path)}, check=False)
        if done.returncode not in (0, 1, NO_TESTS) or not path.exists():
            return {}
        found: dict[str, Any] = json.loads(path.read_text())
        if done.returncode == 1 and not found["failures"]:
            return {}  # something else than a test failed: a collection, a plugin
        return found


def total(outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the outcomes of several runs as one; `seconds` are of all workers together."""
    counts = {name: sum(each[name] for each in outcomes) for name in ("passed", "failed", "skipped")}
    seconds: defaultdict[str, float] = defaultdict(float)
    for each in outcomes:
        for folder, took in each["seconds"].items():
            seconds[folder] += took
    return {
        **counts,
        "failures": [failure for each in outcomes for failure in each["failures"]],
        "seconds": dict(seconds),
    }


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    workers, began = os.environ.get("WORKERS") or "3", time.monotonic()
    stages = []
    for stage in STAGES:
        found = run(["-m", stage, *arguments], workers)
        if not found:
            return _say("pytest did not come to its end; see above", {"passed": 0, "failed": 1, "skipped": 0})
        print(f"{stage}: {time.monotonic() - began:.0f} s since the first test", flush=True)
        stages.append(found)
        if found["failures"] and stage == STAGES[0]:
            break
    outcomes = total(stages)
    for folder, seconds in sorted(outcomes["seconds"].items(), key=lambda item: -item[1]):
        print(f"{seconds:7.0f} s  {folder}")
    for failure in outcomes["failures"]:
        print(f"FAILED {failure['test']}: {failure['why']}")
    history = json.loads(RERUNS.read_text())
    verdict = judge(outcomes, history, FLOOR)
    if verdict.rerun:
        return _rerun(outcomes, history, verdict.rerun)
    return _say(verdict.reason, outcomes, good=verdict.good)


def _rerun(outcomes: dict[str, Any], history: list[Any], tests: Sequence[str]) -> int:
    """Run tests once more, alone; keep and tell both outcomes."""
    again = run(tests, "0")
    passed = bool(again) and not again["failures"] and again["passed"] >= len(tests)
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    kept = entry(outcomes, date=date, commit=_commit(), passed=passed)
    RERUNS.write_text(json.dumps([*history, kept], indent=1) + "\n")
    print(
        f"\nrun once more, alone; add this to {RERUNS.relative_to(ROOT)} and commit it:\n{json.dumps(kept, indent=1)}"
    )
    for failure in kept["tests"]:
        stalled = failure["stalled_seconds"]
        print(f"{failure['test']}: failed, stood still for {stalled} s; alone: {kept['second']}")
    if passed:
        outcomes = {**outcomes, "passed": outcomes["passed"] + len(tests), "failed": 0}
    return _say(f"after a rerun of {len(tests)}", outcomes, good=passed)


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def _say(reason: str, outcomes: dict[str, Any], *, good: bool = False) -> int:
    """Print the verdict and, last, the count of all stages; return the exit code."""
    print(f"\n{'good' if good else 'NOT GOOD'}: {reason}")
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['skipped']} skipped", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
