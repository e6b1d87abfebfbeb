"""`make bench-replacement`: policies of pondstack-data-plane on Zombieland's micro benchmark (EuroSys'18, Fig. 8).

"An application which iterates and performs read/write operations on the entries of an array"; each entry is a page.
Here it is a stand-in guest, a process under the pager, and pages lie in a file of a tmpfs, which stands for remote
memory. `sequential` iterates, `skewed` gives 80 % of accesses to 20 % of the pages, `random` prefers none. For each
share of local memory: faults per 100 accesses, and thousands of accesses per second. The accessed bit is an estimate
(doc/source/contributor/data-plane.md), not the paper's. The last lines compare Mixed and S3-FIFO with FIFO and Clock.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Meter, spread
from pondstack_rack.wait import Deadline
from pondstack_rdma.data_plane import PROGRAM
from rdma.tests.data_plane import builds
from rdma.tests.data_plane.processes import DataPlane, StandinGuest

MIB = 64
SHARES = (20, 40, 50, 60, 80)
"""Of the guest's memory that is local, in percent: the paper's."""

PATTERNS = ("sequential", "skewed", "random")
POLICIES = ("fifo", "clock", "mixed", "s3-fifo")
WARM_SECONDS = 0.5
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Sample:
    """Faults per 100 accesses, and accesses per second."""

    faults: float
    rate: float


def turn(guest_program: Path, folder: Path, policy: str, share: int, pattern: str, seconds: float, seed: int) -> Sample:
    """Measure one policy."""
    folder.mkdir()
    plane = DataPlane(PROGRAM, folder / "plane")
    guest = StandinGuest(guest_program, MIB, 1, seed, pattern, works=False)
    try:
        plane.start()
        plane.await_ready()
        settings = {"policy": policy, "read_ahead_pages": 0, "sealed": False}
        plane.attach(guest, folder / "mirror", MIB * share // 100, **settings)
        guest.begin()
        Deadline(0.0).pause(WARM_SECONDS)
        begun = time.monotonic()
        Deadline(0.0).pause(seconds)
        guest.stop()
        took = time.monotonic() - begun + WARM_SECONDS
        faults = plane.view()["counters"]["faults"]
        plane.detach()
        counts = guest.finish()
        assert counts["wrong"] == 0, counts
        plane.stop()
        return Sample(100 * faults / counts["accesses"], counts["accesses"] / took)
    finally:
        guest.kill()
        if plane.runs:
            plane.kill()


Cell = tuple[str, int, str]
"""Pattern, share, policy."""


def measure(rounds: int, seconds: float, seed: int) -> dict[Cell, list[Sample]]:
    """Return the samples of each cell."""
    cells = list(itertools.product(PATTERNS, SHARES, POLICIES))
    found: dict[Cell, list[Sample]] = {cell: [] for cell in cells}
    with tempfile.TemporaryDirectory(prefix="bench-replacement-", dir=SHARED_MEMORY) as made:
        folder = Path(made)
        program = builds.standin_guest(folder)
        with Meter("turns", rounds * len(cells)) as meter:
            for number, (turn_number, cell) in enumerate(itertools.product(range(rounds), cells)):
                pattern, share, policy = cell
                place = folder / str(number)
                found[cell].append(turn(program, place, policy, share, pattern, seconds, seed + turn_number))
                meter.show(number + 1, " ".join(map(str, cell)))
    return found


def report(found: dict[Cell, list[Sample]]) -> None:
    """Print figures."""
    for pattern in PATTERNS:
        for share, policy in itertools.product(SHARES, POLICIES):
            samples = found[pattern, share, policy]
            faults, rates = [each.faults for each in samples], [each.rate / 1e3 for each in samples]
            print(
                f"{pattern:10} {share:3} % local  {policy:8} {spread(faults, 1)} faults per 100 accesses, "
                f"{spread(rates, 1)} thousand accesses/s"
            )
    for pattern, ours, other in itertools.product(PATTERNS, ("mixed", "s3-fifo"), ("fifo", "clock")):
        pairs = [(_faults(found[pattern, share, ours]), _faults(found[pattern, share, other])) for share in SHARES]
        more = [100 * (mine / theirs - 1) for mine, theirs in pairs if theirs > 0]
        print(f"{pattern:10} {ours} has {min(more):+.0f} to {max(more):+.0f} % more faults than {other} (-: fewer)")


def _faults(samples: Sequence[Sample]) -> float:
    return statistics.median(each.faults for each in samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(prog="make bench-replacement", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each cell is measured")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn is, in seconds")
    parser.add_argument("--seed", type=int, default=1, help="of the accesses")
    chosen = parser.parse_args(arguments)
    report(measure(chosen.rounds, chosen.seconds, chosen.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
