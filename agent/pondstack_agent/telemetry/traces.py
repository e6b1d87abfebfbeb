"""Traces from a file, for guests without memory to measure: what an operator of a rack for trying out has them touch.

The file is a JSON object. A key is an instance's UUID, or a project's, which is for all of its instances; the value is
a list of [age in seconds, percent of the memory that is untouched then], by age. Between two points a straight line is
played, before the first and after the last what that says.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path

from oslo_log import log

from pondstack.domain.errors import BadRequest
from pondstack_agent.telemetry.synthetic import PlayedGuest, untouched_mib

LOG = log.getLogger(__name__)

Point = tuple[float, float]
"""Age in seconds, percent untouched."""


class TraceFile:
    """The traces of a file, read anew when it changes; a guest that is not in it has a generated one.

    A file that is no such file is told once, and changes nothing: what was read before is played on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._traces: Mapping[str, Sequence[Point]] = {}

    def untouched_mib(self, guest: PlayedGuest) -> float:
        """Return what a guest has not touched by now."""
        self._refresh()
        points = self._traces.get(guest.consumer_uuid) or self._traces.get(guest.project_id)
        if points is None:
            return untouched_mib(guest)
        return guest.memory_mib * percent_at(points, guest.age_seconds) / 100

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._stamp, self._traces = None, {}
            return
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._traces = parse(self._path.read_text())
        except (OSError, ValueError, BadRequest) as error:
            LOG.error("[telemetry] trace_file %s: %s; what was read before is played on", self._path, error)


def parse(text: str) -> dict[str, list[Point]]:
    """Return the traces of a file's text; raises BadRequest (which one is wrong, and what it should be), ValueError."""
    traces = json.loads(text)
    if not isinstance(traces, dict):
        raise BadRequest("it is no JSON object of traces by instance or project")
    return {name: _points(name, points) for name, points in traces.items()}


def percent_at(points: Sequence[Point], age_seconds: float) -> float:
    """Return the percentage that is untouched at an age."""
    after = bisect_right(points, age_seconds, key=lambda point: point[0])
    if after in (0, len(points)):
        return points[max(after - 1, 0)][1]
    (begin, high), (end, low) = points[after - 1], points[after]
    return high + (low - high) * (age_seconds - begin) / (end - begin)


def _points(name: str, given: object) -> list[Point]:
    wanted = f"the trace of {name} is no list of [age in seconds, percent untouched], by ascending age, from 0 to 100"
    try:
        points = [(float(age), float(percent)) for age, percent in given]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{wanted}: {error}") from error
    ages = [age for age, _ in points]
    if not points or ages != sorted(set(ages)) or not all(0 <= percent <= 100 for _, percent in points):
        raise BadRequest(wanted)
    return points
