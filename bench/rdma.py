"""`make bench-rdma`: reads of 4 KiB by the verbs driver beside perftest's, in one emulated host, in one run.

Both read over the host's own soft-RoCE device, from another process. A round has one read at a time against
ib_read_lat, and 16 at a time against ib_read_bw; both of perftest sleep until completion events. ib_read_lat that polls
is printed, too: reading in a loop without end it never lets the device's threads fall asleep. Times of single reads are
lower quartiles: other work of the machine only adds to them. What ours does beyond theirs: checks keys and bounds, and
copies between the caller's memory and the device's. Under TCG only ratios mean anything.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from bench.figures import Meter, spread
from tests.hardware import code_disk
from tests.hardware.host import EmulatedHost
from tests.hardware.machine import Machine
from tests.hardware.qemu import Files
from tests.hardware.rdma_hosts import ADDRESSES, MEMORY_MIB, set_up

LATENCY_TARGET, RATE_TARGET = 1.3, 0.8
READS = 400
REGION_BYTES = 2**20


def main() -> int:
    """Measure and print; 0 when the targets hold."""
    parser = argparse.ArgumentParser(prog="make bench-rdma", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds (default 9)")
    parser.add_argument("--reads", type=int, default=READS, help=f"reads of each kind in a round (default {READS})")
    arguments = parser.parse_args()
    rounds, reads = arguments.rounds, arguments.reads
    files = Files.built()
    found: list[tuple[float, float, float, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="bench-rdma-", dir="/tmp") as folder:
        machine = Machine("host1", memory_mib=MEMORY_MIB)
        with EmulatedHost(machine, files, code_disk.build(files, Path(folder))) as host:
            set_up(host, ADDRESSES[0])
            ticket, key = host.remote("tests.hardware.guest.rdma:Lending").lend("bench", REGION_BYTES)
            times = host.remote("tests.hardware.guest.rdma_times:Times", ticket=ticket, key=key)
            with Meter("rounds", rounds) as meter:
                for number in range(rounds + 1):
                    latencies = times.read(reads), times.perftest_read(reads, events=True)
                    polled = times.perftest_read(reads, events=False)
                    rates = times.batches(reads), times.perftest_batches(reads)
                    if number:  # the first one warms up
                        found.append((*latencies, polled, *rates))
                    meter.show(number, f"{latencies[0]:.0f} us, ib_read_lat {latencies[1]:.0f} us")
    return report(found)


def report(found: list[tuple[float, float, float, float, float]]) -> int:
    """Print the figures and the ratio of each round; 0 when the medians hold the targets."""
    ours, theirs, polled, rate, their_rate = zip(*found, strict=True)
    print(f"4 KiB read, us     ours {spread(ours, 0)}   ib_read_lat {spread(theirs, 0)}, polling {spread(polled, 0)}")
    print(f"16 reads, MiB/s    ours {spread(rate, 1)}   ib_read_bw {spread(their_rate, 1)}")
    slower = [mine / its for mine, its in zip(ours, theirs, strict=True)]
    share = [mine / its for mine, its in zip(rate, their_rate, strict=True)]
    beside = [mine / its for mine, its in zip(ours, polled, strict=True)]
    print(f"4 KiB read, ours / ib_read_lat that polls: {spread(beside, 2)}, no target")
    held = statistics.median(slower) <= LATENCY_TARGET, statistics.median(share) >= RATE_TARGET
    words = ["ok" if each else "MISSED" for each in held]
    print(f"4 KiB read, ours / ib_read_lat: {spread(slower, 2)}, target <= {LATENCY_TARGET}: {words[0]}")
    print(f"16 reads at once, ours / ib_read_bw: {spread(share, 2)}, target >= {RATE_TARGET}: {words[1]}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
