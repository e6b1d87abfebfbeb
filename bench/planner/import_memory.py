"""`make bench-import`: the peak of memory of an import, of a vmtable of Azure V1 that is GENERATED, SYNTHETIC.

Its rows have ids as long as Azure's. The import runs in a process of its own, whose peak is told beside that of the
same process with an import of one row. Exit code 0 only when the difference is at most --most-gib.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
AT_ONCE = 100_000
ID = "x" * 54
DAYS_SECONDS, STEP_SECONDS = 30 * 86_400 - 600, 300


def write(path: Path, size: int) -> int:
    """Write a vmtable of at least so many bytes; returns its rows."""
    rows = 0
    with path.open("w") as file:
        while file.tell() < size or not rows:
            for number in range(rows, rows + (AT_ONCE if size else 1)):
                start = number * STEP_SECONDS % DAYS_SECONDS
                file.write(
                    f"{number:010d}{ID},{number % 997:010d}{ID},{number % 9973:010d}{ID},{start},"
                    f"{start + STEP_SECONDS * (1 + number % 7)},99.36,3.42,10.19,Unknown,2,3.5\n"
                )
            rows += AT_ONCE if size else 1
    return rows


def peak(path: Path, output: Path) -> tuple[int, float]:
    """Import in a process of its own; returns its peak of memory in bytes, and its seconds."""
    begun = time.monotonic()
    words = ["-m", "bench.planner.import_memory", "--child", str(path), "--output", str(output)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1]), time.monotonic() - begun


def _child(path: Path, output: Path) -> int:
    from pondstack.cmd import planner

    code = planner.main(["import", "azure-v1", str(path), "--output", str(output)])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when the import stays within its bound."""
    parser = argparse.ArgumentParser(prog="make bench-import", description=__doc__.partition("\n")[0])
    parser.add_argument("--gib", type=float, default=1.0, help="of the file (GIB)")
    parser.add_argument("--most-gib", type=float, default=2.0, help="of memory, beside that of a small import (MOST)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return _child(options.child, options.output)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "small.csv", 0)
        rows = write(folder / "large.csv", int(options.gib * GIB))
        size = os.path.getsize(folder / "large.csv")
        small, _ = peak(folder / "small.csv", folder / "small.parquet")
        large, seconds = peak(folder / "large.csv", folder / "large.parquet")
    held = large - small <= options.most_gib * GIB
    print(
        f"{'HELD' if held else 'MISSED'}: {rows:,} rows in {size / GIB:.2f} GiB are imported in {seconds:.0f} s with a "
        f"peak of {large / MIB:,.0f} MiB, {(large - small) / rows:.0f} bytes a row over {small / MIB:,.0f} MiB of one "
        f"row (bound: {options.most_gib:g} GiB more)"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
