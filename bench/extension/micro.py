"""The micro benchmark as a process of this machine: under the pager, or in a memory cgroup beside a swap area."""

import contextlib
import json
import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.extension import interruption, swap_areas
from bench.extension.memory_group import MemoryGroup, memory_group
from bench.extension.tiers import Tiers, served
from rdma.tests.data_plane import builds
from rdma.tests.data_plane.processes import end_with_parent

SOURCES = [Path(__file__).with_name("guest") / "microbenchmark.c", builds.NATIVE / "pager" / "latency.c"]
ALL_LOCAL, EXTENSION = "all local", "RAM extension"
SWAPS = {"zram": "zram swap", "memory": "swap on a tmpfs", "disk": "swap file on disk"}
"""zram is local memory, compressed; a loop device on a tmpfs stands for remote memory, without a network."""


@dataclass(frozen=True)
class Work:
    """The same in all turns: passes over an array, given up after a limit."""

    mib: int
    passes: int
    pattern: str
    limit_seconds: float
    seed: int

    @property
    def words(self) -> list[str]:
        """The arguments of microbenchmark.c."""
        return [str(self.mib), str(self.passes), str(self.seed), self.pattern, str(self.limit_seconds)]


@dataclass(frozen=True)
class Turn:
    """What one turn took; `seconds` is math.inf when it did not end. Faults are the data plane's, of the work alone."""

    seconds: float
    accesses: int
    access_us: float
    """What the toucher of `touch` waits for, at a page that is not resident: the median."""

    missing_rate: float
    """Such accesses, per second."""

    faults: int = 0
    service_us: float = math.nan
    """From the event of a fault to the filled page, the median."""

    mirror_reads: int = 0


class Micro:
    """A process of the micro benchmark, which has filled its array when `started` returns."""

    def __init__(self, program: Path, work: Work, group: MemoryGroup | None = None) -> None:
        def prepare() -> None:
            end_with_parent()
            if group:
                group.joins()

        interruption.check()
        self._work = work
        self.process = subprocess.Popen(
            [str(program), *work.words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=prepare,
        )

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def await_full(self) -> None:
        """Wait until the array is filled."""
        if self._line() != "ready\n":
            raise swap_areas.CannotMeasure(f"the micro benchmark does not start with {self._work.mib} MiB")

    def run(self) -> Turn:
        """Have it work; it stays when it has."""
        assert self.process.stdin
        print("g", file=self.process.stdin, flush=True)
        found = json.loads(self._line())
        if found["wrong"]:
            raise AssertionError(f"{found['wrong']} words were not what had been written")
        seconds = found["seconds"] if found["whole"] else math.inf
        return Turn(seconds, found["accesses"], found["p50_ns"] / 1e3, found["missing"] / found["seconds"])

    def kill(self) -> None:
        """End it; idempotent."""
        self.process.kill()
        self.process.communicate()


class MicroBench:
    """Turns of the micro benchmark; `disk`: a folder of the disk with the swap file."""

    def __init__(self, folder: Path, disk: Path) -> None:
        self._folder, self._disk = folder, disk
        self._program = builds.build(folder / "microbenchmark", SOURCES, ("-O2",), libraries=())

    def local(self, work: Work) -> Turn:
        """Measure with all memory local."""
        micro = Micro(self._program, work)
        try:
            micro.await_full()
            return micro.run()
        finally:
            micro.kill()

    def extension(self, work: Work, local_mib: int, tiers: Tiers | None = None, **settings: Any) -> Turn:
        """Measure under the pager, with its settings. It fills its array in local memory, as under swap."""
        with served(self._folder, tiers or Tiers()) as extension:
            micro = Micro(self._program, work)
            try:
                micro.await_full()
                extension.attach(micro, work.mib, local_mib, **settings)
                before = extension.plane.view()
                return _counted(micro.run(), before, extension.plane.view())
            finally:
                micro.kill()

    def swapped(self, work: Work, local_mib: int, area: str) -> Turn:
        """Measure in a cgroup of so much memory, with one of SWAPS on."""
        with swap_area(area, self._disk, 2 * work.mib), memory_group("micro") as group:
            micro = Micro(self._program, work, group)
            try:
                group.limit(local_mib)
                micro.await_full()
                return micro.run()
            finally:
                micro.kill()


def _counted(turn: Turn, before: Mapping[str, Any], after: Mapping[str, Any]) -> Turn:
    return replace(
        turn,
        faults=after["counters"]["faults"] - before["counters"]["faults"],
        service_us=after["service"]["p50_ns"] / 1e3,
        mirror_reads=after["store"]["mirror_reads"] - before["store"]["mirror_reads"],
    )


def swap_area(area: str, disk: Path, mib: int) -> contextlib.AbstractContextManager[None]:
    """Return one of SWAPS, to be entered."""
    if area == "zram":
        return swap_areas.zram(mib)
    return swap_areas.memory_file(disk, mib) if area == "memory" else swap_areas.swap_file(disk, mib)
