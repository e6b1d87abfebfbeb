"""`make bench-migration`: bytes of live migrations of a guest with half of its RAM in the pool, beside ordinary ones.

Source, destination and lenders are network namespaces of this machine, and each byte between them is counted by the
kernel's counters of their interfaces: QEMU's stream, what data planes send each other, what goes from and to lenders,
from the offer of the guest until its source has nothing of it any more. So the guest's own paging in that time counts,
too. Agents are not there: what they would say takes some kilobytes. Guests are stock QEMUs without KVM, and lenders are
reached over TCP, which is for debugging: bytes are comparable, seconds are not those of hardware.

The same guest, which fills most of its memory and works on a part of it, the working set, is migrated
- ordinarily: all of its memory is local, and QEMU copies it (pre-copy, as QEMU has it by default);
- by reference, with mirrors on a file system that both hosts share: what lenders have stays there, and its mirror is
  copied by the file system, which is this machine's here: a network file system that copies within its server sends
  no content either, and what it says for it is not counted;
- by reference, with each host's mirrors on its own disk, for comparison, at one working set: what stays with lenders
  is read of them once, for the destination's mirror;
- with slices of a device that both hosts reach: they are half of its memory, a node without CPUs, and stay where they
  are. The device is a file here, and what the guest accesses there is on no network, as over CXL.

Each working set is a row; the target is of the second way, and of the last. Zombieland (EuroSys'18), sections 5.3 and
6.5, Fig. 9, has the time only, and no mirror there. Medians of rounds (least - most). Exits 0 only when the targets
hold, 2 where nothing can be measured.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.extension import interruption
from bench.figures import Meter
from bench.migration.network import network
from bench.migration.report import Found, rows, verdicts
from bench.migration.turns import APART, ORDINARY, SHARED, SLICES, Bench, Figure, Machine, NotBegunError
from rdma.tests.data_plane.qemu_guest import initramfs

SHARES = [10, 30, 50, 70, 90]


def _within(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of a bounded number."""

    def parse(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text}: choose {least} to {most}")
        return value

    return parse


def _shares(text: str) -> list[int]:
    return [_within(1, 99)(word) for word in text.split(",") if word]


def measure(bench: Bench, shares: Sequence[int], apart: Sequence[int], rounds: int) -> Found:
    """Migrate a guest for each cell of the table, one round after the other."""
    cells = [(way, share) for share in shares for way in (ORDINARY, SHARED, SLICES)] + [
        (APART, share) for share in apart
    ]
    found: dict[tuple[str, int], list[Figure]] = {cell: [] for cell in cells}
    with Meter("migrations", rounds * len(cells)) as meter:
        for number in range(rounds):
            for at, (way, share) in enumerate(cells):
                found[way, share].append(bench.turn(way, share, f"{number}-{at}"))
                sent_mib = found[way, share][-1].wire.all / 2**20
                meter.show(number * len(cells) + at + 1, f"{way}, working set {share} %: {sent_mib:.0f} MiB")
    return found


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line."""
    parser = argparse.ArgumentParser(prog="make bench-migration", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=_within(1, 100), default=3, help="how often each cell is measured (default 3)")
    add("--shares", type=_shares, default=SHARES, help="working sets, percent of what the guest's program fills")
    add("--apart", type=_shares, default=[50], help="those of them at which mirrors of hosts' own are measured")
    add("--ram-mib", type=_within(192, 65536), default=320, help="memory of the guest, in MiB (default 320)")
    add("--words-mib", type=_within(16, 65536), default=240, help="of it that its program fills and verifies (240)")
    add("--rate", type=_within(1, 100000), default=100, help="pages that it accesses in a second, half of them written")
    add("--disk", type=Path, default=Path("/var/tmp"), help="a folder of a disk, for mirrors")
    chosen = parser.parse_args(words)
    if wrong := sorted(set(chosen.apart) - set(chosen.shares)):
        parser.error(f"--apart: {wrong[0]} is none of --shares, so there is nothing to compare it with")
    if chosen.words_mib > chosen.ram_mib - 64:
        parser.error(f"--words-mib: the guest's kernel needs 64 MiB beside them; choose {chosen.ram_mib - 64} at most")
    return chosen


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the command line says."""
    chosen = arguments_of(words)
    if os.geteuid() != 0:
        print("bench-migration: network namespaces and userfaultfd need root", file=sys.stderr)
        return 2
    try:
        with (
            interruption.heard(),
            tempfile.TemporaryDirectory(prefix="bench-migration-", dir=chosen.disk) as made,
            network() as hosts,
        ):
            folder = Path(made)
            machine = Machine(initramfs(folder), chosen.ram_mib, chosen.words_mib, chosen.rate)
            found = measure(Bench(hosts, folder, machine), chosen.shares, chosen.apart, chosen.rounds)
    except NotBegunError as error:
        print(f"bench-migration: {error}", file=sys.stderr)
        return 2
    print(
        f"Guests of {chosen.ram_mib} MiB without KVM, {chosen.words_mib} MiB of them filled with words, "
        f"{chosen.rate} pages accessed a second; {chosen.ram_mib // 2} MiB local, the rest with a lender over TCP. "
        f"{chosen.rounds} rounds, median (least - most)"
    )
    print("\n".join(rows(found)))
    judged = verdicts(found)
    for what, held in judged:
        print(f"{what}: {'ok' if held else 'MISSED'}")
    return 0 if all(held for _, held in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
