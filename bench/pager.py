"""`make bench-pager`: faults served by pondstack-data-plane against the least that userfaultfd can do, in the same run.

The floor (rdma/tests/data_plane/floor.c) moves pages between memory and memory, with nothing else of a pager. The guest
is a stand-in, a process that touches random pages, one word an access, of a memory four times its limit; pages lie in a
file of a tmpfs, which stands for remote memory: so this is what the pager adds, not what a lender takes. Rounds
alternate, and the ratio within each round is one sample. `service` is the median from the event to the filled hole,
`access` that of what the toucher waits for; `time per fault` is all that a fault takes one thread, eviction included.
Exits 0 only when the medians of service hold their targets.
"""

import argparse
import json
import statistics
import subprocess
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

TARGETS = {"plain": 1.3, "sealed": 1.6}
MIB, LIMIT_MIB = 128, 32
WARM_SECONDS = 1.0
"""Until every page has left once."""

SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Sample:
    """Medians of one turn, in microseconds, and faults per second."""

    service: float
    access: float
    faults: float


@dataclass(frozen=True)
class Bench:
    """The programs, and where they work."""

    folder: Path
    guest: Path
    floor: Path
    seconds: float
    seed: int

    def turn(self, kind: str, number: int) -> Sample:
        """Measure one kind."""
        return self._floor(number) if kind == "floor" else self._pager(kind == "sealed", number)

    def _floor(self, number: int) -> Sample:
        command = [str(self.floor), str(MIB), str(LIMIT_MIB), str(WARM_SECONDS + self.seconds), str(self.seed + number)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        faults = found["missing"] / (WARM_SECONDS + self.seconds)
        return Sample(found["service_p50_ns"] / 1e3, found["p50_ns"] / 1e3, faults)

    def _pager(self, sealed: bool, number: int) -> Sample:
        folder = self.folder / f"{number}-{sealed}"
        folder.mkdir()
        plane = DataPlane(PROGRAM, folder / "plane")
        guest = StandinGuest(self.guest, MIB, 1, self.seed + number, "touch")
        try:
            plane.start()
            plane.await_ready()
            plane.attach(guest, folder / "mirror", LIMIT_MIB, sealed=sealed, policy="fifo", read_ahead_pages=0)
            Deadline(0.0).pause(WARM_SECONDS)
            begun, before = time.monotonic(), plane.view()["counters"]["faults"]
            Deadline(0.0).pause(self.seconds)
            view = plane.view()
            faults = (view["counters"]["faults"] - before) / (time.monotonic() - begun)
            plane.detach()
            counts = guest.finish()
            assert counts["wrong"] == 0, counts
            plane.stop()
            return Sample(view["service"]["p50_ns"] / 1e3, counts["p50_ns"] / 1e3, faults)
        finally:
            guest.kill()
            if plane.runs:
                plane.kill()


def measure(bench: Bench, rounds: int) -> dict[str, list[Sample]]:
    """Return the samples of each kind, by round."""
    found: dict[str, list[Sample]] = {kind: [] for kind in ("floor", *TARGETS)}
    with Meter("rounds", rounds) as meter:
        for number in range(rounds):
            kinds = list(found) if number % 2 else list(found)[::-1]
            for kind in kinds:
                found[kind].append(bench.turn(kind, number))
            meter.show(number + 1, "")
    return found


def report(found: dict[str, list[Sample]]) -> int:
    """Print figures; 0 when all targets hold."""
    good = True
    for kind, samples in found.items():
        service, access, faults = (
            [getattr(each, name) for each in samples] for name in ("service", "access", "faults")
        )
        print(
            f"{kind:7} service {spread(service, 1)} us, access {spread(access, 1)} us, {spread(faults, 0)} faults/s; "
            f"medians of {len(samples)} rounds (least - most)"
        )
    for kind, target in TARGETS.items():
        pairs = list(zip(found[kind], found["floor"], strict=True))
        service = [ours.service / floor.service for ours, floor in pairs]
        access = [ours.access / floor.access for ours, floor in pairs]
        whole = [floor.faults / ours.faults for ours, floor in pairs]
        held = statistics.median(service) <= target
        good = good and held
        print(
            f"{kind:7} service / floor {spread(service, 2)}, target <= {target}: {'ok' if held else 'MISSED'}; "
            f"access / floor {spread(access, 2)}, time per fault / floor {spread(whole, 2)}"
        )
    return 0 if good else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(prog="make bench-pager", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="how often each kind is measured")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn is, in seconds")
    parser.add_argument("--seed", type=int, default=1, help="of the accesses")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-pager-", dir=SHARED_MEMORY) as made:
        folder = Path(made)
        bench = Bench(folder, builds.standin_guest(folder), builds.floor(folder), chosen.seconds, chosen.seed)
        return report(measure(bench, chosen.rounds))


if __name__ == "__main__":
    sys.exit(main())
