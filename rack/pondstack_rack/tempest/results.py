"""What a run of Tempest brought: each test's outcome, read from the subunit stream of stestr."""

import io
from dataclasses import dataclass, field
from typing import Any

import subunit

OUTCOMES = {"success": "passed", "fail": "failed", "skip": "skipped", "xfail": "passed", "uxsuccess": "failed"}


@dataclass
class Results:
    """Outcomes by test: passed, failed (an error of its class too) or skipped, with reasons of the skips."""

    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def named(self, outcome: str) -> list[str]:
        """Return the tests with an outcome, in order."""
        return sorted(test for test, found in self.outcomes.items() if found == outcome)

    def add(self, other: "Results", where: str) -> None:
        """Take in the results of another run: the same test may run in several places."""
        self.outcomes |= {f"{where}: {test}": found for test, found in other.outcomes.items()}
        self.reasons |= {f"{where}: {test}": reason for test, reason in other.reasons.items()}

    def leave_out(self, chosen: str, excluded: str) -> None:
        """Count what a list of exclusions took out of the chosen tests as skipped: `REGEX  # REASON` in each line."""
        folders = [line.rstrip(".").strip("^") for line in chosen.splitlines() if line and not line.startswith("#")]
        for line in excluded.splitlines():
            pattern, _, reason = line.partition("  # ")
            if any(pattern.strip("^").startswith(folder) for folder in folders):
                name = pattern.strip("^").replace("\\", "")
                self.outcomes[name], self.reasons[name] = "skipped", reason

    def summary(self) -> list[str]:
        """Return the lines that come last: failures, skips with their reasons, the three figures."""
        lines = [f"FAILED   {test}" for test in self.named("failed")]
        lines += [f"skipped  {test}: {self.reasons.get(test, '')}" for test in self.named("skipped")]
        lines.append(", ".join(f"{len(self.named(outcome))} {outcome}" for outcome in ("passed", "failed", "skipped")))
        return lines


class _Collector:
    """A StreamResult (testtools) that keeps outcomes and reasons."""

    def __init__(self) -> None:
        self.results = Results()
        self._texts: dict[str, bytes] = {}

    def startTestRun(self) -> None:
        """Begin."""

    def stopTestRun(self) -> None:
        """Give each skipped test its reason; a test that began and never ended has failed."""
        for test, text in self._texts.items():
            self.results.reasons[test] = " ".join(text.decode(errors="replace").split())

    def status(self, test_id: str | None = None, test_status: str | None = None, **more: Any) -> None:
        """Take one event in."""
        if not test_id:
            return
        if more.get("file_name") == "reason":
            self._texts[test_id] = self._texts.get(test_id, b"") + bytes(more.get("file_bytes") or b"")
        if test_status == "inprogress":
            self.results.outcomes.setdefault(test_id, "failed")
        elif test_status in OUTCOMES:
            self.results.outcomes[test_id] = OUTCOMES[test_status]


def parse(stream: bytes) -> Results:
    """Return the results in a subunit (v2) stream."""
    collector = _Collector()
    collector.startTestRun()
    subunit.ByteStreamToStreamResult(io.BytesIO(stream), non_subunit_name="stdout").run(collector)
    collector.stopTestRun()
    return collector.results


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same tests without our plugins in Nova and with them."""

    without: Results
    with_ours: Results

    @property
    def holds(self) -> bool:
        """Whether nothing fails with our plugins, and all passes that does without."""
        return not self.with_ours.named("failed") and not self.regressions()

    def regressions(self) -> list[str]:
        """Return the tests that pass without our plugins and do not with them."""
        return [
            f"{test}: passed without, {self.with_ours.outcomes.get(test, 'not run')} with"
            for test in self.without.named("passed")
            if self.with_ours.outcomes.get(test) != "passed"
        ]

    def differences(self) -> list[str]:
        """Return every test whose outcome is not the same, whichever way."""
        found = []
        for test in sorted(self.without.outcomes.keys() | self.with_ours.outcomes.keys()):
            before, after = (results.outcomes.get(test, "not run") for results in (self.without, self.with_ours))
            if before != after:
                found.append(f"{test}: {before} without, {after} with")
        return found

    def summary(self) -> list[str]:
        """Return the lines that come last: what failed or was skipped with us, all differences, the figures."""
        *lines, with_ours = self.with_ours.summary()
        differences = self.differences()
        lines += [f"DIFFERS  {line}" for line in differences]
        lines += [f"with pondstack in Nova: {with_ours}", f"without: {self.without.summary()[-1]}"]
        return [*lines, f"{len(differences)} differences, {len(self.regressions())} regressions"]
