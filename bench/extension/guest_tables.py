"""Zombieland's Tables 1 and 2, and the hybrid pool's Fig. 6, on applications in a guest without KVM."""

import contextlib
import itertools
import math
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.extension import exports
from bench.extension.guest import MEMORY, Figure, Guest, Machine
from bench.extension.image import Image
from bench.extension.micro import Turn
from bench.extension.overcommit import Split
from bench.extension.penalties import Penalty, Verdict, beats, table
from bench.extension.tiers import Tiers, served
from bench.figures import Meter, spread

LOCAL = "all local"
EXTENSION = "RAM extension"
EXPLICIT, BARE = "explicit swap", "bare explicit swap"
FAST, SLOW = "local fast swap", "local slow swap"
WAYS = (EXTENSION, EXPLICIT, BARE, FAST, SLOW)
"""In the order of the paper's columns; `bare` is an export that has nothing but memory: no sealing, no mirror."""

SLOW_OPTIONS = "throttling.iops-total=120,throttling.bps-total=125829120"
"""A simulated hard disk of 120 requests and 120 MiB a second."""

Cell = tuple[str, int]
"""Way, and percent of the memory that is local; 100 with LOCAL."""

Turns = dict[Cell, list[dict[str, Figure]]]


@dataclass(frozen=True)
class GuestBench:
    """Guests of the same reserved memory, whose workloads fill `work_mib` of it."""

    image: Image
    folder: Path
    disk: Path
    ram_mib: int
    work_mib: int
    limit_seconds: float
    workloads: Sequence[str]

    def turn(self, cell: Cell) -> dict[str, Figure]:
        """Boot one guest, and have it do all its work."""
        way, share = cell
        local_mib = self.ram_mib * share // 100
        if way == LOCAL:
            return self._plain(self.ram_mib, "")
        if way == EXTENSION:
            return self.extended(local_mib, Tiers())
        with self._swap(way, self.ram_mib - local_mib) as drive:
            return self._plain(local_mib, drive)

    def _machine(self, ram_mib: int, swap: str) -> Machine:
        return Machine(self.image, ram_mib, self.work_mib, self.limit_seconds, self.workloads, swap)

    def _plain(self, ram_mib: int, drive: str) -> dict[str, Figure]:
        with self._guest(self._machine(ram_mib, drive)) as guest:
            return guest.work()

    @contextlib.contextmanager
    def _guest(self, machine: Machine) -> Iterator[Guest]:
        with tempfile.TemporaryDirectory(prefix="guest-", dir=self.folder) as here:
            guest = Guest(machine, Path(here))
            try:
                guest.await_memory()
                yield guest
            finally:
                guest.kill()

    def extended(self, local_mib: int, tiers: Tiers) -> dict[str, Figure]:
        """Have so much local, the rest in these tiers; attached before the guest begins, as a start of a guest does."""
        with served(self.folder, tiers) as extension, self._guest(self._machine(self.ram_mib, "")) as guest:
            extension.attach(guest, self.ram_mib, local_mib, memory=MEMORY)

            def count() -> tuple[int, int]:
                view = extension.plane.view()
                return view["counters"]["faults"], view["store"]["mirror_reads"]

            return guest.work(count)

    def overcommitted(self, ratio: float) -> dict[str, Turn]:
        """Have the memory spread over all tiers, as the hybrid pool's Fig. 6."""
        split = Split.of(self.ram_mib, ratio)
        found = self.extended(split.local_mib, split.tiers(self.disk))
        return {
            name: Turn(each.seconds, 0, math.nan, math.nan, each.faults, mirror_reads=each.mirror_reads)
            for name, each in found.items()
        }

    @contextlib.contextmanager
    def _swap(self, way: str, mib: int) -> Iterator[str]:
        """Have a swap disk; yields the options of its -drive."""
        if way in (EXPLICIT, BARE):
            export = exports.block_device(self.folder, self.disk, mib) if way == EXPLICIT else None
            with export or exports.memory(self.folder, mib) as address:
                yield f"file={address}"
            return
        with tempfile.NamedTemporaryFile(prefix="bench-swap-", dir=self.disk) as made:
            for _ in range(mib):
                made.write(bytes(2**20))
            made.flush()
            slow = f",{SLOW_OPTIONS}" if way == SLOW else ""
            yield f"format=raw,cache=none,file={made.name}{slow}"

    def measure(self, shares: Sequence[int], ways: Sequence[str], rounds: int) -> Turns:
        """Return the turns of each cell by round; every other round runs backwards."""
        cells: list[Cell] = [(LOCAL, 100), *itertools.product(ways, shares)]
        found: Turns = {cell: [] for cell in cells}
        with Meter("guests", rounds * len(cells)) as meter:
            for number in range(rounds):
                for at, cell in enumerate(cells if number % 2 == 0 else list(cells)[::-1]):
                    found[cell].append(self.turn(cell))
                    meter.show(number * len(cells) + at + 1, f"{cell[0]}, {cell[1]} % local")
        return found


def penalties(found: Turns, workload: str) -> dict[Cell, Penalty]:
    """Return the penalty of each cell over the all-local turns of its rounds."""
    base = [turn[workload].seconds for turn in found[LOCAL, 100]]
    return {
        cell: Penalty.of([turn[workload].seconds for turn in turns], base)
        for cell, turns in found.items()
        if cell[0] != LOCAL
    }


def rows(found: Turns, workload: str) -> str:
    """Return one workload's part of Table 2; its first column of figures is that of Table 1."""
    judged = penalties(found, workload)
    ways = list(dict.fromkeys(way for way, _ in judged))
    shares = list(dict.fromkeys(share for _, share in judged))
    lines = [[f"{share} %", *(str(judged[way, share]) for way in ways)] for share in shares]
    return table(("local memory", *ways), lines)


def page_rows(found: Turns, workload: str) -> str:
    """Return how many pages came from elsewhere in each cell, median of its turns: of swap, in the timed work alone.

    Under the pager it is the faults since the workload before, so that those of filling the memory count.
    """
    ways = list(dict.fromkeys(way for way, _ in found if way != LOCAL))
    shares = list(dict.fromkeys(share for way, share in found if way != LOCAL))
    lines = [[f"{share} %", *(_pages(found[way, share], workload) for way in ways)] for share in shares]
    return table(("pages that came", *ways), lines)


def _pages(turns: Sequence[Mapping[str, Figure]], workload: str) -> str:
    each = [turn[workload] for turn in turns]
    return f"{statistics.median(figure.faults or figure.pages_in for figure in each):,.0f}"


def series(found: Turns, workload: str) -> dict[str, dict[float, Sequence[float]]]:
    """Return one workload's penalties for a plot."""
    lines: dict[str, dict[float, Sequence[float]]] = {}
    for (way, share), penalty in penalties(found, workload).items():
        lines.setdefault(way, {})[share] = penalty.percents
    return lines


def verdicts(found: Turns, workloads: Sequence[str]) -> list[Verdict]:
    """Judge RAM extension against both explicit swaps, at all shares of all workloads."""
    judged = {workload: penalties(found, workload) for workload in workloads}
    ours = _of(judged, EXTENSION)
    return [
        beats(f"{EXTENSION} beats {way} at equal local memory", ours, _of(judged, way))
        for way in (EXPLICIT, BARE)
        if _of(judged, way)
    ]


def _of(judged: Mapping[str, Mapping[Cell, Penalty]], way: str) -> dict[str, Penalty]:
    return {
        f"{workload} {share} %": penalty
        for workload, cells in judged.items()
        for (its_way, share), penalty in cells.items()
        if its_way == way
    }


def local_seconds(found: Turns, workload: str) -> str:
    """Return how long the all-local turns took."""
    return spread([turn[workload].seconds for turn in found[LOCAL, 100]], 2)
