"""The hybrid pool's Fig. 6: slowdown beside page faults over the overcommit ratio R, with the SSD as the last tier.

DRAM holds 1/R of the memory; half of it is local, the other half with a lender; what is left is in the mirror on a
disk. R = 1 has no page on the SSD alone, and is what the others are compared with, as in the paper.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.extension.micro import MicroBench, Turn, Work
from bench.extension.penalties import Penalty, table
from bench.extension.tiers import LEASE_MIB, Tiers
from bench.figures import Meter, spread

CACHE_MIB = 16
"""What the data plane may use of the page cache: pages that are on the disk alone are read from there."""

LEAST_RATIO = 1.0


@dataclass(frozen=True)
class Split:
    """How a memory is spread over the tiers, in MiB."""

    local_mib: int
    lent_mib: int

    @classmethod
    def of(cls, memory_mib: int, ratio: float) -> "Split":
        """Split by an overcommit ratio of 1 or more; what a lender has is in whole leases."""
        if ratio < LEAST_RATIO:
            raise ValueError(f"R = {ratio:g}: an overcommit ratio is 1 or more")
        local = int(memory_mib / ratio / 2)
        if local < 1:
            raise ValueError(f"R = {ratio:g} leaves nothing of {memory_mib} MiB local")
        # Pages leave ahead of need: of R = 1, too, each one has room with the lender.
        lent = memory_mib - local + LEASE_MIB if ratio == LEAST_RATIO else local
        return cls(local, -(-lent // LEASE_MIB) * LEASE_MIB)

    def tiers(self, disk: Path) -> Tiers:
        """Return the tiers with a mirror in a folder of a disk."""
        return Tiers(disk, self.lent_mib, CACHE_MIB)


Turns = dict[tuple[str, float], list[Turn]]
"""By workload and ratio."""


def measure(
    ratios: Sequence[float], rounds: int, names: Sequence[str], turn: Callable[[float], Mapping[str, Turn]]
) -> Turns:
    """Return the turns of each workload that one turn has; every other round runs backwards."""
    found: Turns = {(name, ratio): [] for name in names for ratio in ratios}
    with Meter("turns of overcommit", rounds * len(ratios)) as meter:
        for number in range(rounds):
            for at, ratio in enumerate(ratios if number % 2 == 0 else list(ratios)[::-1]):
                for name, done in turn(ratio).items():
                    found[name, ratio].append(done)
                meter.show(number * len(ratios) + at + 1, f"R = {ratio:g}")
    return found


def micro_turn(bench: MicroBench, work: Sequence[Work], disk: Path) -> Callable[[float], dict[str, Turn]]:
    """Return what measures the micro benchmark as a process."""

    def turn(ratio: float) -> dict[str, Turn]:
        found = {}
        for each in work:
            split = Split.of(each.mib, ratio)
            found[f"micro, {each.pattern}"] = bench.extension(each, split.local_mib, split.tiers(disk))
        return found

    return turn


def series(found: Turns) -> dict[str, dict[float, Sequence[float]]]:
    """Return the slowdowns for a plot."""
    lines: dict[str, dict[float, Sequence[float]]] = {}
    for name, ratio in found:
        lines.setdefault(name, {})[ratio] = _slowdown(found, name, ratio).percents
    return lines


def _slowdown(found: Turns, name: str, ratio: float) -> Penalty:
    base = [each.seconds for each in found[name, LEAST_RATIO]]
    return Penalty.of([each.seconds for each in found[name, ratio]], base)


def rows(found: Turns) -> str:
    """Return the table: slowdown over R = 1, faults, and pages that the SSD gave."""
    lines = []
    for name, ratio in found:
        turns, base = found[name, ratio], found[name, LEAST_RATIO]
        slower = _slowdown(found, name, ratio)
        faults = statistics.median(each.faults for each in turns)
        usual = statistics.median(each.faults for each in base)
        more = f"{faults / usual:.2f}" if usual else ""
        reads = [each.mirror_reads for each in turns]
        lines.append(
            [name, f"{ratio:g}", str(slower), spread([each.faults for each in turns], 0), more, spread(reads, 0)]
        )
    return table(("workload", "R", "slowdown over R = 1", "faults", "faults / R = 1", "pages from the SSD"), lines)
