"""Starts and history from a trace of VM-hours (GWA-T-12 Bitbrains, hourly): a stand-in, for it has no starts.

Each VM-week is a start, a VM is its own project, and the days before a week are the records of its history. A VM is a
number within one month: the numbers of another month may be other machines. `used` is what a hypervisor estimates as
active, so that 1 - max is an upper bound of what was never touched.
"""

import csv
import gzip
import hashlib
import math
import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import attrgetter
from pathlib import Path

from pondstack.prediction.examples import Example
from pondstack.prediction.features import OLDEST, Record, Request, Vocabulary, spread, vector
from pondstack.prediction.untouched import SPREAD

FILE = "vm_memory_hourly.csv.gz"
DAY_HOURS, WEEK_DAYS = 24, 7
LEAST_DAY, LEAST_WEEK = 17, 120
"""Hours that must have been observed of a day or week."""
LEAST_MIB = 1024
HOUR = timedelta(hours=1)


class BadTrace(ValueError):
    """The file is no trace of VM-hours, or too short; the text names the line and what it should hold."""


@dataclass(slots=True)
class Day:
    """One VM on one day: hours observed, least capacity and most memory used, in MiB."""

    hours: int
    capacity_mib: float
    used_mib: float
    vcpus: int


@dataclass(frozen=True)
class Start:
    """One VM-week; `number`: of the VM, by which training and test are told apart in all months."""

    number: str
    example: Example

    @cached_property
    def row(self) -> list[float]:
        """Return its features; the trace names no images and no zones."""
        return vector(self.example.request, self.example.history, self.example.as_of, Vocabulary())

    @cached_property
    def spread(self) -> float:
        """Return the spread of its project's records, as a margin counts it."""
        return spread(self.example.history, SPREAD)

    def forgotten(self) -> "Start":
        """Return it without any history: its size alone is known."""
        return Start(self.number, replace(self.example, history=()))


@dataclass(frozen=True, slots=True)
class Trace:
    """All VM-weeks in the order of time, and when the trace begins; it has `weeks` whole ones.

    `sha256`: of the file's text, however it is compressed.
    """

    starts: list[Start]
    begin: datetime
    weeks: int
    sha256: str


def load(path: Path) -> Trace:
    """Read a trace. Raises BadTrace, OSError."""
    days: dict[tuple[str, str], dict[int, Day]] = defaultdict(dict)
    digest = hashlib.sha256()
    try:
        rows = list(_rows(path, digest.update))
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BadTrace(f"{path} is broken: {error}") from None
    if not rows:
        raise BadTrace(f"{path} has no rows")
    first, last = min(row[2] for row in rows), max(row[2] for row in rows)
    for month, number, hour, vcpus, capacity, used in rows:
        mine, day = days[month, number], (hour - first) // DAY_HOURS
        if day not in mine:
            mine[day] = Day(0, capacity, used, vcpus)
        found = mine[day]
        found.hours += 1
        found.capacity_mib = min(found.capacity_mib, capacity)
        found.used_mib = max(found.used_mib, used)
    begin = datetime.fromtimestamp(first * 3600, UTC)
    weeks = (last - first + 1) // (DAY_HOURS * WEEK_DAYS)
    starts = [start for vm, mine in days.items() for start in _starts(vm, mine, begin, weeks)]
    return Trace(sorted(starts, key=lambda item: item.example.as_of), begin, weeks, digest.hexdigest())


def _rows(path: Path, see: Callable[[bytes], None]) -> Iterator[tuple[str, str, int, int, float, float]]:
    with gzip.open(path, "rt", newline="") as file:
        for number, row in enumerate(csv.DictReader(_seen(file, see)), 2):
            try:
                yield (
                    row["month"],
                    row["vm_file"],
                    int(row["epoch_hour"]) // 3600,
                    int(row["cores"]),
                    _amount(row["mem_cap_mb"]),
                    _amount(row["mem_used_max_mb"]),
                )
            except (KeyError, TypeError, ValueError) as error:
                wanted = "month, vm_file, epoch_hour (seconds), cores, mem_cap_mb, mem_used_max_mb"
                raise BadTrace(f"{path}, line {number}: {error!r}; wanted {wanted}") from None


def _seen(lines: Iterable[str], see: Callable[[bytes], None]) -> Iterator[str]:
    for line in lines:
        see(line.encode())
        yield line


def _amount(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{text} is no amount of memory")
    return value


def _starts(vm: tuple[str, str], days: dict[int, Day], begin: datetime, weeks: int) -> Iterator[Start]:
    project = "/".join(vm)
    records = [
        Record(project, _share(day.capacity_mib, day.used_mib), begin + (number + 1) * DAY_HOURS * HOUR)
        for number, day in sorted(days.items())
        if day.hours >= LEAST_DAY and day.capacity_mib >= 1
    ]
    seen_at = attrgetter("seen_at")
    for week in range(weeks):
        mine = [days[day] for day in range(week * WEEK_DAYS, (week + 1) * WEEK_DAYS) if day in days]
        memory = int(min((day.capacity_mib for day in mine), default=0))
        if sum(day.hours for day in mine) < LEAST_WEEK or memory < LEAST_MIB:
            continue
        as_of = begin + week * WEEK_DAYS * DAY_HOURS * HOUR
        share = _share(memory, max(day.used_mib for day in mine))
        low, high = bisect_left(records, as_of - OLDEST, key=seen_at), bisect_right(records, as_of, key=seen_at)
        end = as_of + WEEK_DAYS * DAY_HOURS * HOUR
        request = Request(project, memory, mine[0].vcpus)
        yield Start(vm[1], Example(request, as_of, end, share, records[low:high]))


def _share(capacity_mib: float, used_mib: float) -> float:
    return min(max(1.0 - used_mib / capacity_mib, 0.0), 1.0)
