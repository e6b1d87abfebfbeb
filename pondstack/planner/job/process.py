"""Follows the process that replays: starts it within limits, tells its progress, ends it when it is not wanted."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pondstack import bounded_process
from pondstack.bounded_process import Limits, Started
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.planner_job import PlannerReport
from pondstack.planner.job import worker

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay came to."""

    summary: str
    report: PlannerReport


def replay(
    folder: Path, limits: Limits, follow: Callable[[int, int], bool], started: Started, clock: Callable[[], float]
) -> Outcome | None:
    """Have the replay done that a folder holds; None where `follow` put an end to it.

    `follow(done, total)` is called every second; what it returns says whether to go on. Raises BadRequest for what
    cannot be replayed, Unavailable (killed, out of a limit).
    """
    more = {"MPLBACKEND": "svg", "MPLCONFIGDIR": str(folder)}
    child = bounded_process.begin(worker.__name__, folder, limits, more)
    ends = clock() + limits.seconds
    try:
        started(child)
        while (code := _wait(child)) is None:
            if not follow(*_progress(folder)):
                return None
            if clock() >= ends:
                raise Unavailable(f"it took more than {limits.seconds} s and was killed; see [planner] seconds")
    finally:
        bounded_process.end(child)
    error = folder / worker.ERROR
    if error.exists():
        raise BadRequest(error.read_text())
    if code:
        raise Unavailable(f"its process ended with {code} (killed, or out of [planner] memory_mib or seconds)")
    follow(*_progress(folder))
    report = PlannerReport(json.loads((folder / worker.ANSWERS).read_text()), (folder / worker.PAGE).read_text())
    return Outcome((folder / worker.SUMMARY).read_text(), report)


def _wait(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _progress(folder: Path) -> tuple[int, int]:
    try:
        done, total = json.loads((folder / worker.PROGRESS).read_text())
    except FileNotFoundError:
        return 0, 0
    return int(done), int(total)
