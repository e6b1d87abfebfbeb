"""Traces from files, for guests and hosts without a load of their own: what an operator of a rack for trying out wants.

A file is a JSON object; the value of a key is a list of points by ascending time. For guests ([telemetry] trace_file)
the key is an instance's UUID, or a project's, which is for all of its instances, and a point is [age in seconds,
percent of the memory that is untouched then]. For hosts (host_trace_file) the key is a host's name, and a point is
[seconds since the file was written, CPU load in percent]. Between two points a straight line is played, before the
first and after the last what that says.
"""

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from oslo_log import log

from pondstack.domain.errors import BadRequest
from pondstack_agent.telemetry.synthetic import PlayedGuest, untouched_mib

LOG = log.getLogger(__name__)

Point = tuple[float, float]
"""Seconds, percent."""


class PointFile:
    """The points of a file by name, read anew when it changes.

    A file that is no such file is told once, and changes nothing: what was read before is played on.
    """

    def __init__(self, path: Path, option: str) -> None:
        """`option`: the one that names the file."""
        self._path, self._option = path, option
        self._stamp: tuple[int, int] | None = None
        self._traces: Mapping[str, Sequence[Point]] = {}

    @property
    def written_at(self) -> float:
        """When the file was written, in seconds since the epoch; 0: there is none."""
        return 0.0 if self._stamp is None else self._stamp[0] / 1e9

    def points(self, *names: str) -> Sequence[Point] | None:
        """Return those of the first name that has some."""
        self._refresh()
        return next((self._traces[name] for name in names if name in self._traces), None)

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
            text = "[telemetry] %s %s: %s; what was read before is played on"
            LOG.error(text, self._option, self._path, error)


class TraceFile:
    """What guests touch; one that is not in the file has a generated trace."""

    def __init__(self, path: Path) -> None:
        self._file = PointFile(path, "trace_file")

    def untouched_mib(self, guest: PlayedGuest) -> float:
        """Return what a guest has not touched by now."""
        points = self._file.points(guest.consumer_uuid, guest.project_id)
        if points is None:
            return untouched_mib(guest)
        return guest.memory_mib * percent_at(points, guest.age_seconds) / 100


class HostTraceFile:
    """How busy one host is; one that is not in the file is as busy as it is."""

    def __init__(self, path: Path, host: str, now: Callable[[], float] = time.time) -> None:
        self._file, self._host, self._now = PointFile(path, "host_trace_file"), host, now

    def load_percent(self) -> float | None:
        """Return the load that is played now, None: none is."""
        points = self._file.points(self._host)
        return None if points is None else percent_at(points, max(0.0, self._now() - self._file.written_at))


def parse(text: str) -> dict[str, list[Point]]:
    """Return the traces of a file's text; raises BadRequest (which one is wrong, and what it should be), ValueError."""
    traces = json.loads(text)
    if not isinstance(traces, dict):
        raise BadRequest("it is no JSON object of traces by name")
    return {name: _points(name, points) for name, points in traces.items()}


def percent_at(points: Sequence[Point], seconds: float) -> float:
    """Return the percentage of a moment."""
    after = bisect_right(points, seconds, key=lambda point: point[0])
    if after in (0, len(points)):
        return points[max(after - 1, 0)][1]
    (begin, high), (end, low) = points[after - 1], points[after]
    return high + (low - high) * (seconds - begin) / (end - begin)


def _points(name: str, given: object) -> list[Point]:
    wanted = f"the trace of {name} is no list of [seconds, percent], by ascending time, the percentages from 0 to 100"
    try:
        points = [(float(age), float(percent)) for age, percent in given]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{wanted}: {error}") from error
    ages = [age for age, _ in points]
    if not points or ages != sorted(set(ages)) or not all(0 <= percent <= 100 for _, percent in points):
        raise BadRequest(wanted)
    return points
