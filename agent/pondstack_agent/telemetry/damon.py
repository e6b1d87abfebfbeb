"""Which memory of a guest is used, by DAMON: it asks the page tables of KVM, too, which /proc does not show.

DAMON divides ranges of a process's addresses into regions and looks at one page of each every so often: was it used
since the last look? Where answers differ it divides further (Linux: Documentation/mm/damon/design.rst, operation set
`fvaddr`). What is said of a region is said of all its pages: an estimate, on the hot side.
"""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pondstack_agent.records import Records
from pondstack_agent.telemetry import damon_attributes, guest_process, privileged
from pondstack_agent.telemetry.mappings import Mapped
from pondstack_agent.telemetry.referenced import Used

ROOT = Path("/")
ADMIN = Path("sys/kernel/mm/damon/admin/kdamonds")
OPERATIONS = "fvaddr"
INTERVALS, SAMPLES = 10, 20
"""Intervals in a window, after which DAMON divides regions anew, and looks in each of them."""
_SETTLING = 0.5
"""Of a window: the time before it, in which the regions become as small as they have to be."""
FIRST_REGIONS, MOST_REGIONS = 200, 1000
_LEAST_BYTES = 2**21
_WATCHED = "0/contexts/0"
_TRIED = f"{_WATCHED}/schemes/0/tried_regions"
_RECORD = "watch"

NONE = f"this kernel has no DAMON that sees a guest under KVM (/{ADMIN}, operations {OPERATIONS}; Linux 6.2)"
BUSY = "somebody else uses DAMON on this host"
ENDED = "the agent ended while it watched"

Range = tuple[int, int]
"""Addresses: first, and the one after the last."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What one watch found, range by range, and what the kernel's thread took of a CPU."""

    used: list[Used]
    cpu_seconds: float


class Damon:
    """Watches one process at a time. It is the whole machine's: one that somebody else uses is left alone.

    `records`: notes that the DAMON which is there is ours, for the agent's next life. `stopping` ends a watch early.
    """

    def __init__(
        self,
        records: Records,
        window_seconds: float,
        stopping: threading.Event,
        root: Path = ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records, self._window, self._stopping = records, window_seconds, stopping
        self._root, self._admin, self._clock = root, root / ADMIN, clock

    def why_not(self) -> str:
        """Return why nothing can be watched now, '' when it can; takes away what a former life left."""
        if not self._admin.exists():
            return NONE
        try:
            ours = self._read("nr_kdamonds") == "0" or self._abandoned()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            ours = False  # who asks the kernel for regions all the time keeps all others out of its attributes
        return "" if ours else BUSY

    def watch(self, pid: int, ranges: Sequence[Mapped]) -> Watched:
        """Return what of each range was used within the window. Raises OSError, mostly because the process ended."""
        self._claim(pid)
        try:
            self._start(pid, list(pieces([(item.start, item.end) for item in ranges])))
            used: list[Range] = []
            begins = self._clock() + self._window * _SETTLING
            while (now := self._clock()) < begins + self._window and not self._stopping.is_set():
                # The kernel answers at the end of an interval.
                self._write("0/state", "update_schemes_tried_regions")
                if now >= begins:
                    used += self._used()
            cpu_seconds = self._cpu_seconds()
        finally:
            self._take_away()
        if self._stopping.is_set():
            return Watched([Used(reason=ENDED) for _ in ranges], cpu_seconds)
        merged = union(used)
        return Watched([self._of(pid, item, merged) for item in ranges], cpu_seconds)

    def _of(self, pid: int, item: Mapped, used: Sequence[Range]) -> Used:
        proc = self._root / "proc"
        there = guest_process.present(pid, item.start, item.end, proc).touched_bytes
        inside = [(max(start, item.start), min(end, item.end)) for start, end in used]
        hot = sum(guest_process.present(pid, start, end, proc).touched_bytes for start, end in inside if start < end)
        return Used(hot, max(0, there - hot))

    def _claim(self, pid: int) -> None:
        """Make DAMON ours; raises OSError when somebody else was quicker, whose it stays."""
        self._records.put(_RECORD, {"pid": pid, "boot": self._boot()})
        try:
            if self._read("nr_kdamonds") != "0":
                raise OSError(errno.EBUSY, BUSY)
            self._write("nr_kdamonds", "1")
        except OSError:
            self._records.remove(_RECORD)
            raise

    def _start(self, pid: int, regions: Sequence[Range]) -> None:
        self._write("0/contexts/nr_contexts", "1")
        sample_us = round(self._window * 1e6 / INTERVALS / SAMPLES)
        for name, value in (
            ("operations", OPERATIONS),
            ("monitoring_attrs/intervals/sample_us", sample_us),
            ("monitoring_attrs/intervals/aggr_us", sample_us * SAMPLES),
            ("monitoring_attrs/nr_regions/max", MOST_REGIONS),
            ("targets/nr_targets", 1),
            ("targets/0/pid_target", pid),
            ("targets/0/regions/nr_regions", len(regions)),
            *_bounds(regions),
            ("schemes/nr_schemes", 1),
            # Does nothing, to regions of any size, use and age: for the list of them.
            ("schemes/0/action", "stat"),
            ("schemes/0/access_pattern/sz/max", 2**63),
            ("schemes/0/access_pattern/nr_accesses/max", SAMPLES),
            ("schemes/0/access_pattern/age/max", 2**31),
        ):
            self._write(f"{_WATCHED}/{name}", str(value))
        self._write("0/state", "on")

    def _used(self) -> Sequence[Range]:
        if self._elsewhere:
            return [(start, end) for start, end in privileged.used_regions()]
        return damon_attributes.used(self._admin / _TRIED)

    def _cpu_seconds(self) -> float:
        stat = self._root / "proc" / self._read("0/pid") / "stat"
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _abandoned(self) -> bool:
        """Take the DAMON of a former life away; False when it is not ours."""
        record = self._records.get(_RECORD)
        if record is None or record["boot"] != self._boot():
            return False
        try:
            target = self._read(f"{_WATCHED}/targets/0/pid_target")
        except FileNotFoundError:
            target = ""  # it was killed between two of the first steps
        if target not in ("", "0", str(record["pid"])):
            return False
        self._take_away()
        return True

    def _take_away(self) -> None:
        if self._read("nr_kdamonds") != "0":
            if self._read("0/state") == "on":
                self._write("0/state", "off")
            self._write("nr_kdamonds", "0")
        self._records.remove(_RECORD)

    def _boot(self) -> str:
        return (self._root / "proc/sys/kernel/random/boot_id").read_text().strip()

    @property
    def _elsewhere(self) -> bool:
        return self._root == ROOT and privileged.context.elsewhere

    def _read(self, name: str) -> str:
        if self._elsewhere:
            return str(privileged.read_damon(name))
        return damon_attributes.read(self._admin / name)

    def _write(self, name: str, text: str) -> None:
        if self._elsewhere:
            privileged.write_damon(name, text)
        else:
            damon_attributes.write(self._admin / name, text)


def pieces(ranges: Sequence[Range]) -> Iterator[Range]:
    """Return ranges in FIRST_REGIONS pieces or so, of equal size, for DAMON to begin with."""
    size = sum(end - start for start, end in ranges) // FIRST_REGIONS
    step = max(_LEAST_BYTES, size // _LEAST_BYTES * _LEAST_BYTES)
    for first, last in sorted(ranges):
        for start in range(first, last, step):
            yield start, min(start + step, last)


def union(ranges: Sequence[Range]) -> list[Range]:
    """Return the same addresses, each once, in order."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _bounds(regions: Sequence[Range]) -> Iterator[tuple[str, int]]:
    for number, (start, end) in enumerate(regions):
        yield f"targets/0/regions/{number}/start", start
        yield f"targets/0/regions/{number}/end", end
