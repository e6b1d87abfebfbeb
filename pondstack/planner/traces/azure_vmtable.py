"""Azure Public Dataset V1 and V2: the file vmtable.csv.gz, which has no header.

Columns: VM, subscription, deployment, created and deleted (seconds, multiples of 300), greatest and mean CPU load, 95th
percentile of the greatest, category, cores, memory in GB. V2 has buckets of cores and of memory: 2, 4, 8, 24, and more
than 24; 2, 4, 8, 32, 64, and more than 64 (AzurePublicDatasetV1.md and V2.md; Cortez et al., SOSP'17). Servers created
at 0 had been there before; deleted at 2,591,700, the last reading of 30 days, they still ran. Untouched memory is not
in it. The group is the first 12 characters of the encrypted subscription.
"""

from pathlib import Path

import polars

from pondstack.planner.traces import lines, rows
from pondstack.planner.traces.imported import Imported, Options

V1, V2 = "azure-v1", "azure-v2"
WIDTH = 11
COLUMNS = {
    "id": 0,
    "group": 1,
    "start_seconds": 3,
    "end_seconds": 4,
    "load_percent": 6,
    "vcpus": 9,
    "memory_mib": 10,
}
LAST_READING = 30 * 86_400 - 300
GROUP_CHARACTERS = 12
OPEN_BUCKETS = {"vcpus": {">24": "30"}, "memory_mib": {">64": "70"}}
"""What stands for buckets without an upper bound: an assumption of ours, to be read as a least size."""


def v1(path: Path, options: Options) -> Imported:
    """Read a vmtable of V1: sizes as they are."""
    return _read(path, options, V1, _frame(path))


def v2(path: Path, options: Options) -> Imported:
    """Read a vmtable of V2: a bucket counts as its upper bound, the open ones as 30 cores and 70 GB."""
    frame = _frame(path).with_columns(polars.col(name).replace(known) for name, known in OPEN_BUCKETS.items())
    note = "sizes are upper bounds of V2's buckets; >24 cores count as 30, >64 GB as 70"
    return _read(path, options, V2, frame, note)


def _frame(path: Path) -> polars.LazyFrame:
    ended = polars.col("end_seconds")
    return lines.columns(path, COLUMNS, WIDTH, skip=0).with_columns(
        polars.when(ended.cast(polars.Float64, strict=False).ne_missing(LAST_READING)).then(ended),
        polars.col("group").str.slice(0, GROUP_CHARACTERS),
    )


def _read(path: Path, options: Options, origin: str, frame: polars.LazyFrame, *notes: str) -> Imported:
    return rows.imported(
        path, frame, options, origin, scales={"memory_mib": 1024.0}, end_seconds=LAST_READING, notes=notes
    )
