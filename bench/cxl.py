"""`make bench-cxl`: the CXL driver's time per GiB beside the raw daxctl commands, in one emulated host, in one run.

A turn of either brings one slice of 1 GiB online as movable memory and takes it, unused, offline and away again. Ours
includes what daxctl does not do: pre-flight, the permission table, the look for zeros in each page, records on disk,
reading everything back. Turns alternate, so that whatever else the machine does meets both; the ratio of each pair of
turns is one sample. Under TCG only ratios mean anything.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from bench.figures import Meter, spread
from pondstack.devices.emulated import create_device
from pondstack.domain.model import Extent
from tests.hardware import code_disk
from tests.hardware.host import EmulatedHost
from tests.hardware.machine import Machine
from tests.hardware.qemu import Files

TARGET = 1.1
SLICES, SLICE_MIB = 2, 1024
HOST, SERIAL, TABLE = "host1", "bench", "/mnt/device"


def main() -> int:
    """Measure and print; 0 when the target holds."""
    parser = argparse.ArgumentParser(prog="make bench-cxl", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="turns of either (default 15)")
    rounds = parser.parse_args().rounds
    files = Files.built()
    with tempfile.TemporaryDirectory(prefix="bench-cxl-", dir="/tmp") as folder:
        pool = Path(folder, "pool")
        device = create_device(pool, SLICES, slice_mib=SLICE_MIB, serial=SERIAL)
        machine = Machine(HOST, (pool / "memory",), shares={TABLE: pool})
        with EmulatedHost(machine, files, code_disk.build(files, Path(folder))) as host:
            times = host.remote(
                "tests.hardware.guest.cxl_times:Times",
                host=HOST,
                serial=SERIAL,
                table=TABLE,
                state_dir=Path("/var/lib/pondstack/agent"),
            )
            ours, raw = [], []
            with Meter("turns", rounds) as meter:
                for number in range(rounds + 1):
                    tag = f"turn-{number}"
                    device.grant(HOST, [Extent(0, 1)], tag=tag, epoch=1)
                    pair = times.driver(tag, 0), times.raw()
                    device.revoke([0], tag=tag, epoch=1)
                    if number:  # the first one makes the region and loads modules
                        ours.append(pair[0])
                        raw.append(pair[1])
                    meter.show(number, f"{sum(pair[0]):.2f} s, daxctl {sum(pair[1]):.2f} s")
    return report(ours, raw)


def report(ours: list[tuple[float, float]], raw: list[tuple[float, float]]) -> int:
    """Print seconds per GiB and the ratio of each pair of turns; 0 when the median holds the target."""
    for number, verb in enumerate(("online", "offline and away")):
        print(f"{verb:<18} s/GiB   ours {spread([item[number] for item in ours], 2)}", end="   ")
        print(f"daxctl {spread([item[number] for item in raw], 2)}")
    ratios = [sum(mine) / sum(its) for mine, its in zip(ours, raw, strict=True)]
    median = statistics.median(ratios)
    print(
        f"whole turn, ours / daxctl: {spread(ratios, 3)}, target <= {TARGET}: {'ok' if median <= TARGET else 'MISSED'}"
    )
    return 0 if median <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
