"""The report of a run: a table for people, JSON for everything else, the history for a second judgement."""

import json
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.robustness.faults import KILL_LEADER
from tests.robustness.history import WRITES, Call, History, Outcome, time_to_resume
from tests.robustness.model import Broken
from tests.robustness.plan import LEAST_KILLS, Counts
from tests.robustness.run import Result
from tests.robustness.validate import DUPLICATED, LOST, OLD_EPOCH

MEDIAN_RESUME_SECONDS = 2.0
"""Target: the median time from kill -9 of the leader to the first acknowledged write that was begun after it."""

HEAD = ("fault", "runs", "acknowledged", "lost", "duplicated", "resume median s", "worst s")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `acknowledged`: writes answered between such a fault and the next one of any kind."""

    fault: str
    runs: int
    acknowledged: int
    lost: int
    duplicated: int
    resumes: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median time to resume in seconds; NaN without one."""
        return statistics.median(self.resumes) if self.resumes else float("nan")

    @property
    def worst(self) -> float:
        """Longest time to resume in seconds; NaN without one."""
        return max(self.resumes, default=float("nan"))


def rows(history: History, broken: Sequence[Broken]) -> list[Row]:
    """Return a line for each kind of fault and one for everything; what cannot be put down to one is in the last."""
    moments = [fault.at for fault in history.faults]
    names = [fault.name for fault in history.faults]
    answered = [call for call in history.calls if call.outcome is Outcome.OK and call.kind in WRITES]
    under = [_under(call, moments) for call in answered]
    of_operation = {call.operation_id: _under(call, moments) for call in history.calls}
    made = []
    for name in sorted(set(names), key=names.count, reverse=True):
        mine = {number for number, other in enumerate(names) if other == name}
        guilty = [item for item in broken if of_operation.get(item.operation_id) in mine]
        times = [time_to_resume(history.faults[number], history.calls) for number in sorted(mine)]
        acknowledged = sum(number in mine for number in under)
        made.append(_row(name, len(mine), acknowledged, guilty, times))
    every = [seconds for row in made for seconds in row.resumes]
    return [*made, _row("all", len(names), len(answered), broken, every)]


def _under(call: Call, moments: Sequence[float]) -> int:
    """Return which fault a call ended after, -1 before the first."""
    return bisect_right(moments, call.begun if call.ended is None else call.ended) - 1


def _row(name: str, runs: int, acknowledged: int, broken: Iterable[Broken], times: Iterable[float | None]) -> Row:
    codes = [item.code for item in broken]
    lost, twice = (sum(code in wanted for code in codes) for wanted in (LOST, DUPLICATED))
    return Row(name, runs, acknowledged, lost, twice, tuple(sorted(time for time in times if time is not None)))


def missed(result: Result, table: Sequence[Row]) -> list[str]:
    """Return the targets that do not hold."""
    codes = [item.code for item in result.broken]
    targets = {
        "operations lost": sum(code in LOST for code in codes),
        "operations or owners twice": sum(code in DUPLICATED for code in codes),
        "writes from an old epoch": sum(code in OLD_EPOCH for code in codes),
        "other broken promises": sum(code not in LOST | DUPLICATED | OLD_EPOCH for code in codes),
    }
    found = [f"{count} {what}, target 0" for what, count in targets.items() if count]
    if len(result.history.faults) < len(result.options.plan()):
        found.append(f"ended early: {len(result.history.faults)} of {len(result.options.plan())} faults")
    return found + _too_slow(result.options.counts, table)


def _too_slow(counts: Counts, table: Sequence[Row]) -> list[str]:
    """Return what the time to resume misses; that too few kills of the leader alone can tell, where any were wanted."""
    times, what = next((row.resumes for row in table if row.fault == KILL_LEADER.name), ()), KILL_LEADER.name
    if counts.kills and len(times) < LEAST_KILLS:
        return [f"too few runs to judge the time to resume after {what}: {len(times)}, wanted {LEAST_KILLS}"]
    median = statistics.median(times) if times else 0.0
    if counts.kills and median >= MEDIAN_RESUME_SECONDS:
        return [f"median time to resume after {what} {median:.2f} s, target < {MEDIAN_RESUME_SECONDS}"]
    return []


def text(result: Result, table: Sequence[Row]) -> str:
    """Return the last lines of a run."""
    cells = [HEAD] + [
        (row.fault, *map(str, (row.runs, row.acknowledged, row.lost, row.duplicated)), *_times(row)) for row in table
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [
        " | ".join(
            [line[0].ljust(widths[0]), *(word.rjust(width) for word, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in cells
    ]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    old = sum(item.code in OLD_EPOCH for item in result.broken)
    faulty = missed(result, table)
    verdict = f"FAILED: {'; '.join(faulty)}" if faulty else "OK: every target holds"
    epochs = {entry.epoch for entry in result.history.journal}
    loans = [loan for loan in result.history.loans if loan.acknowledged is not None]
    amiss = sum(item.code.startswith(("loan_", "lent_")) or item.code == "double_user" for item in result.broken)
    lines.append(f"loans of lent memory acknowledged: {len(loans)}; lost, used twice, wrong or left over: {amiss}")
    lines.append(
        f"{result.options.database}, seed {result.options.seed}: {len(result.history.journal)} journal entries of "
        f"{len(epochs)} epochs in {result.seconds:.0f} s; writes accepted from an old epoch: {old}"
    )
    return "\n".join([*lines, verdict])


def _times(row: Row) -> tuple[str, str]:
    return (f"{row.median:.2f}", f"{row.worst:.2f}") if row.resumes else ("-", "-")


def save(result: Result, table: Sequence[Row], folder: Path) -> None:
    """Write report.json, report.txt and history.jsonl.gz."""
    folder.mkdir(parents=True, exist_ok=True)
    start = result.history.faults[0].at if result.history.faults else 0.0
    data: dict[str, Any] = {
        "seed": result.options.seed,
        "database": result.options.database,
        "counts": asdict(result.options.counts),
        "seconds": result.seconds,
        "table": [asdict(row) for row in table],
        "missed": missed(result, table),
        "broken": [asdict(item) for item in result.broken],
        "faults": [
            {"name": fault.name, "detail": fault.detail, "at_seconds": fault.at - start, "resume_seconds": seconds}
            for fault, seconds in ((f, time_to_resume(f, result.history.calls)) for f in result.history.faults)
        ],
        "refused_or_unknown": _errors(result.history.calls),
    }
    (folder / "report.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "report.txt").write_text(text(result, table) + "\n")
    result.history.save(folder / "history.jsonl.gz")


def _errors(calls: Iterable[Call]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for call in calls:
        if call.outcome is not Outcome.OK:
            key = f"{call.outcome} {call.kind}: {call.error.partition(':')[0]}"
            counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
