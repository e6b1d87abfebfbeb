"""`make bench-rdma`: reads of 4 KiB by the verbs driver beside perftest's, in one emulated host, in one run.

Both read over the host's own soft-RoCE device, from another process. A round has one read at a time against
ib_read_lat, and 16 at a time against ib_read_bw. Like is set against like: reads from Python, which end by a completion
channel at the latest, beside `ib_read_lat -e`; reads one right after the other by the driver's compiled part beside
ib_read_lat without it, which polls. Whoever pauses between two reads, as Python does, lets the device's threads fall
asleep, which are woken dearly under TCG: that ratio is printed without a target. Times of single
reads are lower quartiles: other work of the machine only adds to them. What ours does beyond perftest: checks keys and
bounds, and copies between the caller's memory and the device's. Under TCG only ratios mean anything.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import Meter, spread
from tests.hardware import code_disk
from tests.hardware.host import EmulatedHost
from tests.hardware.machine import Machine
from tests.hardware.qemu import Files
from tests.hardware.rdma_hosts import ADDRESSES, MEMORY_MIB, set_up

LATENCY_TARGET, RATE_TARGET = 1.3, 0.8
ROUNDS, READS = 15, 400
REGION_BYTES = 2**20


class Round(NamedTuple):
    """What one round has found: microseconds of a read, MiB/s of batches."""

    read: float
    events: float
    native: float
    polling: float
    batches: float
    bandwidth: float


def main() -> int:
    """Measure and print; 0 when the targets hold."""
    parser = argparse.ArgumentParser(prog="make bench-rdma", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    parser.add_argument("--reads", type=int, default=READS, help=f"reads of each kind in a round (default {READS})")
    arguments = parser.parse_args()
    rounds, reads = arguments.rounds, arguments.reads
    files = Files.built()
    found: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="bench-rdma-", dir="/tmp") as folder:
        machine = Machine("host1", memory_mib=MEMORY_MIB)
        with EmulatedHost(machine, files, code_disk.build(files, Path(folder))) as host:
            set_up(host, ADDRESSES[0])
            ticket, key = host.remote("tests.hardware.guest.rdma:Lending").lend("bench", REGION_BYTES)
            times = host.remote("tests.hardware.guest.rdma_times:Times", ticket=ticket, key=key)
            with Meter("rounds", rounds) as meter:
                for number in range(rounds + 1):
                    made = Round(
                        times.read(reads),
                        times.perftest_read(reads, events=True),
                        times.native_read(reads),
                        times.perftest_read(reads, events=False),
                        times.batches(reads),
                        times.perftest_batches(reads),
                    )
                    if number:  # the first one warms up
                        found.append(made)
                    meter.show(number, f"{made.read:.0f} us, ib_read_lat -e {made.events:.0f} us")
    return report(found)


def report(rounds: Sequence[Round]) -> int:
    """Print the figures and the ratio of each round; 0 when the medians hold the targets."""
    read, events, native, polling, batches, bandwidth = zip(*rounds, strict=True)
    print(f"4 KiB read, us       ours from Python {spread(read, 0)}   ib_read_lat -e {spread(events, 0)}")
    print(f"one after the other  ours in C {spread(native, 0)}   ib_read_lat {spread(polling, 0)}")
    print(f"16 reads, MiB/s      ours {spread(batches, 1)}   ib_read_bw -e {spread(bandwidth, 1)}")
    print(f"4 KiB read, ours from Python / ib_read_lat: {spread(ratios(read, polling), 2)}, no target")
    held = []
    for name, found in (
        ("ours from Python / ib_read_lat -e", ratios(read, events)),
        ("ours in C / ib_read_lat", ratios(native, polling)),
    ):
        held.append(statistics.median(found) <= LATENCY_TARGET)
        print(f"4 KiB read, {name}: {spread(found, 2)}, target <= {LATENCY_TARGET}: {'ok' if held[-1] else 'MISSED'}")
    share = ratios(batches, bandwidth)
    held.append(statistics.median(share) >= RATE_TARGET)
    word = "ok" if held[-1] else "MISSED"
    print(f"16 reads at once, ours / ib_read_bw -e: {spread(share, 2)}, target >= {RATE_TARGET}: {word}")
    return 0 if all(held) else 1


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return ours to theirs, by round."""
    return [mine / its for mine, its in zip(ours, theirs, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
