"""`make bench-extension`: RAM extension beside swap, in one run.

`faults`: what a fault takes, beside the least that userfaultfd can do, and beside swap under the same limit.
`policies`: Zombieland's Fig. 8. `micro`: its micro benchmark as a process of this machine. `applications`: its Tables 1
and 2, in guests without KVM. `overcommit`: the hybrid pool's Fig. 6, on both. All tables are penalties in percent,
medians of rounds, with the least and the most; what is emulated or simulated is said above each table.

Swap areas, cgroups and mounts of the run are removed at its end, also after ctrl-C; beside other swap it does not run.
Exits 0 only when the targets of the parts that it was asked for hold.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.extension import accessed_bit, fault_service, guest_tables, interruption, micro_tables, overcommit
from bench.extension.guest_tables import GuestBench
from bench.extension.image import Image
from bench.extension.micro import MicroBench, Work
from bench.extension.penalties import Verdict
from bench.extension.plots import PENALTY, Plots, Series, refuse_without_library
from bench.extension.swap_areas import CannotMeasure, refuse_others
from bench.extension.tiers import SHARED_MEMORY
from bench.pager import Bench
from rdma.tests.data_plane import builds

WORKLOADS = ("micro", "valkey", "sqlite", "analytics")
SHARE = "local memory, percent"
FAULTS = "faults of 100 accesses"
PASSES = 40
"""Over the array of the micro benchmark: all-local turns last some tenths of a second."""


@dataclass(frozen=True)
class Run:
    """What was asked for, and where it works: a folder of a tmpfs, and one of a disk."""

    chosen: argparse.Namespace
    folder: Path
    disk: Path

    @property
    def micro(self) -> MicroBench:
        """The micro benchmark as a process."""
        return MicroBench(self.folder, self.disk)

    @property
    def work(self) -> list[Work]:
        """What it does."""
        found = self.chosen
        return [
            Work(found.micro_mib, found.passes, pattern, found.limit_seconds, found.seed)
            for pattern in micro_tables.PATTERNS
        ]

    def plot(self, name: str, title: str, axis: str, lines: Series, values: str = PENALTY) -> None:
        """Draw a table, if plots are wanted."""
        if self.chosen.plots:
            print(f"plot: {Plots(self.chosen.plots).write(name, title, axis, lines, values)}")

    def guests(self) -> GuestBench:
        """The guests of the tables; builds what they are made of."""
        found = self.chosen
        work_mib = found.ram_mib * found.work_percent // 100
        limits = (found.limit_seconds, found.workloads)
        return GuestBench(Image.build(self.folder), self.folder, self.disk, found.ram_mib, work_mib, *limits)


def faults(run: Run) -> list[Verdict]:
    """Measure and print what a fault takes. The target of the pager itself is that of `make bench-pager`."""
    floor = Bench(
        run.folder, builds.standin_guest(run.folder), builds.floor(run.folder), run.chosen.seconds, run.chosen.seed
    )
    print("Remote memory is a tmpfs, without a network; zram compresses pages that hardly repeat.")
    print(
        fault_service.rows(fault_service.FaultBench(run.micro, floor, run.chosen.micro_mib).measure(run.chosen.rounds))
    )
    return []


def policies(run: Run) -> list[Verdict]:
    """Measure and print Fig. 8."""
    print("Remote memory is a tmpfs. The accessed bit is an estimate: what faults again soon was accessed.")
    found = micro_tables.measure_policies(run.micro, run.work, run.chosen.shares, run.chosen.rounds)
    print(micro_tables.policy_rows(found))
    for pattern in micro_tables.PATTERNS:
        lines = micro_tables.policy_series(found, pattern)
        run.plot(f"figure-8-{pattern}", f"replacement, micro benchmark, {pattern}", SHARE, lines, FAULTS)
    print("\nSimulated: faults of 100 accesses of `skewed`, with the accessed bit that page tables have.")
    print(accessed_bit.rows(run.chosen.shares, run.chosen.seed))
    verdicts = micro_tables.policy_verdicts(found)
    for verdict in verdicts:
        if verdict.target.startswith("mixed"):
            print(f"  no target here (remote-memory-figures.md says why): {verdict}")
    return [verdict for verdict in verdicts if not verdict.target.startswith("mixed")]


def micro(run: Run) -> list[Verdict]:
    """Measure and print the micro benchmark as a process."""
    print(
        "A process of this machine, in no guest. Remote memory is a tmpfs, without a network. RAM extension seals pages"
    )
    print("and serves them from a process; swap on a tmpfs is the kernel's own, on a loop device, and seals nothing.")
    found = micro_tables.measure_ways(run.micro, run.work, run.chosen.shares, run.chosen.rounds)
    print(micro_tables.way_rows(found))
    for pattern in micro_tables.PATTERNS:
        lines = micro_tables.way_series(found, pattern)
        run.plot(f"micro-{pattern}", f"micro benchmark, {pattern}, as a process", SHARE, lines)
    for verdict in micro_tables.way_verdicts(found):
        print(f"  for comparison, {verdict}")
    return []


def applications(run: Run) -> list[Verdict]:
    """Measure and print Tables 1 and 2."""
    chosen, bench = run.chosen, run.guests()
    print(
        f"Guests of {chosen.ram_mib} MiB, emulated (TCG): the code of a guest, its own swapping too, is about 10 times"
    )
    print(
        "slower than on hardware, the pager's and the disk's are not. Remote memory is a tmpfs, without a network. The"
    )
    print(f"fast disk is this machine's; the slow one is simulated ({guest_tables.SLOW_OPTIONS}).")
    found = bench.measure(chosen.shares, chosen.ways, chosen.rounds)
    for workload in chosen.workloads:
        print(f"\n{workload}: penalty over all local, which took {guest_tables.local_seconds(found, workload)} s")
        print(guest_tables.rows(found, workload))
        print(f"\n{guest_tables.page_rows(found, workload)}")
        run.plot(
            f"table-2-{workload}", f"{workload} (guests are emulated)", SHARE, guest_tables.series(found, workload)
        )
    return guest_tables.verdicts(found, chosen.workloads)


def ssd(run: Run) -> list[Verdict]:
    """Measure and print Fig. 6."""
    chosen = run.chosen
    print(
        "A lender over shared memory stands for remote DRAM; the SSD is this machine's disk, read past the page cache"
    )
    print(f"but for {overcommit.CACHE_MIB} MiB. `micro` is a process of this machine, the others work in guests (TCG).")
    names = [f"micro, {pattern}" for pattern in micro_tables.PATTERNS]
    turn = overcommit.micro_turn(run.micro, run.work, run.disk)
    turns = overcommit.measure(chosen.ratios, chosen.rounds, names, turn)
    if chosen.workloads:
        turns |= overcommit.measure(chosen.ratios, chosen.rounds, chosen.workloads, run.guests().overcommitted)
    print(overcommit.rows(turns))
    run.plot("overcommit", "slowdown over R = 1 (guests are emulated)", "overcommit ratio R", overcommit.series(turns))
    return []


PARTS: dict[str, Callable[[Run], list[Verdict]]] = {
    "faults": faults,
    "policies": policies,
    "micro": micro,
    "applications": applications,
    "overcommit": ssd,
}


def _listed(kind: Callable[[str], object], allowed: Sequence[object] | None = None) -> Callable[[str], list[object]]:
    """Return a parser of comma-separated values."""

    def parse(text: str) -> list[object]:
        found = [kind(word) for word in text.split(",") if word]
        if allowed is not None and (wrong := [word for word in found if word not in allowed]):
            raise argparse.ArgumentTypeError(f"{wrong[0]}: choose of {', '.join(map(str, allowed))}")
        return found

    return parse


def _within(kind: Callable[[str], float], least: float, most: float) -> Callable[[str], float]:
    """Return a parser of a bounded number."""

    def parse(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text}: choose {least:g} to {most:g}")
        return value

    return parse


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line."""
    parser = argparse.ArgumentParser(prog="make bench-extension", description=__doc__)
    add = parser.add_argument
    add("--parts", type=_listed(str, list(PARTS)), default=list(PARTS), help=f"of {','.join(PARTS)} (default: all)")
    add("--rounds", type=_within(int, 1, 1000), default=3, help="how often each cell is measured (default 3)")
    add("--seconds", type=_within(float, 0.1, 3600), default=2.0, help="of a turn of `faults`, in seconds (default 2)")
    add("--shares", type=_listed(_within(int, 10, 95)), default=[20, 40, 50, 60, 80], help="percent that is local")  # type: ignore[arg-type]
    add(
        "--ratios",
        type=_listed(_within(float, 1, 16)),
        default=[1.0, 1.5, 2.0, 3.0, 4.0],
        help="R; 1 is always measured",
    )
    add("--ways", type=_listed(str, guest_tables.WAYS), default=list(guest_tables.WAYS), help="columns of Table 2")
    add("--workloads", type=_listed(str, WORKLOADS), default=list(WORKLOADS), help="in guests; none: no guests")
    add("--ram-mib", type=_within(int, 256, 65536), default=512, help="memory of a guest, in MiB (default 512)")
    add("--work-percent", type=_within(int, 1, 70), default=50, help="of it that a workload fills (default 50)")
    add("--micro-mib", type=_within(int, 4, 65536), default=128, help="of the micro benchmark as a process, in MiB")
    add("--passes", type=_within(int, 1, 10**6), default=PASSES, help="of the micro benchmark over its array")
    add("--limit-seconds", type=_within(float, 1, 86400), default=120.0, help="after which a turn counts as endless")
    add("--disk", type=Path, default=Path("/var/tmp"), help="a folder of a disk, for swap files and mirrors")
    add("--plots", type=Path, help="a folder to write plots to, as SVG (needs matplotlib, extra bench)")
    add("--seed", type=_within(int, 0, 2**31), default=1, help="of the accesses (default 1)")
    chosen = parser.parse_args(words)
    chosen.ratios = sorted({overcommit.LEAST_RATIO, *chosen.ratios})
    return chosen


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the command line says; 0 when all targets hold, 1 when one does not, 2 when nothing can be told."""
    chosen = arguments_of(words)
    verdicts: list[Verdict] = []
    try:
        refuse_others()
        if chosen.plots:
            refuse_without_library()
        with (
            interruption.heard(),
            tempfile.TemporaryDirectory(prefix="bench-extension-", dir=SHARED_MEMORY) as made,
            tempfile.TemporaryDirectory(prefix="bench-extension-", dir=chosen.disk) as disk,
        ):
            for name in chosen.parts:
                print(f"\n== {name}: {chosen.rounds} rounds, median (least - most)", flush=True)
                run = Run(chosen, Path(made), Path(disk))
                verdicts += PARTS[name](run)
    except CannotMeasure as error:
        print(f"bench-extension: {error}", file=sys.stderr)
        return 2
    print("\n== targets")
    for verdict in verdicts:
        print(verdict)
    return 0 if all(verdict.held for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
