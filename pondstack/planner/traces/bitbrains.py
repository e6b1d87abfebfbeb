"""GWA-T-12 Bitbrains: what each VM had and used, by time (Shen, van Beek and Iosup, CCGrid'15).

The archive is a folder with a file for each VM: fields separated by `;`, a row each 5 minutes. `bitbrains-hourly` is
one CSV file with a row for each VM and hour: month, vm_file, epoch_hour, cores, cpu_mean_pct, mem_cap_mb,
mem_used_max_mb. A VM starts with its first row and ends after its last one, and still runs where that is of the end.
Memory is the largest that was provisioned. Untouched memory is what was never used of it: use is of active memory, so
that this is an upper bound. Customers are not in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped
from pondstack.planner.traces import lines, rows
from pondstack.planner.traces.imported import Imported, Options

NAME, HOURLY = "bitbrains", "bitbrains-hourly"
STEP_SECONDS, HOUR = 300, 3_600
ARCHIVE = {"seconds": 0, "vcpus": 1, "load": 4, "mib": 5, "used": 6}
ARCHIVE_WIDTH = 11
KIB_MIB = 1024.0
COLUMNS = {
    "seconds": "epoch_hour",
    "vcpus": "cores",
    "load": "cpu_mean_pct",
    "mib": "mem_cap_mb",
    "used": "mem_used_max_mb",
    "month": "month",
    "vm": "vm_file",
}
MEASURED = ("seconds", "vcpus", "load", "mib", "used")
BAD = "measurements without time, cores, load or memory"


@dataclass(frozen=True, slots=True)
class _Part:
    """One file. `bad`: rows that are no measurement, the first of them at line `first`. `vms`: a row for each VM."""

    name: str
    rows: int
    bad: int
    first: int
    vms: polars.DataFrame


def read(folder: Path, options: Options) -> Imported:
    """Read the archive's folder: each *.csv in it is a VM. Row numbers of VMs are those of their files, by name."""
    files = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    if not files:
        raise BadRequest(f"{folder} is no folder with a CSV file for each VM: give the archive's rnd or fastStorage")
    parts = []
    for number, path in enumerate(files, 1):
        frame = lines.columns(path, ARCHIVE, ARCHIVE_WIDTH, separator=";", skip=1).with_columns(
            vm=polars.lit(path.stem)
        )
        part = _part(path, frame, {"mib": KIB_MIB, "used": KIB_MIB})
        parts.append(replace(part, vms=part.vms.with_columns(polars.lit(number, polars.Int64).alias(lines.ROW))))
    return _imported(folder, parts, options, NAME, STEP_SECONDS)


def read_hourly(path: Path, options: Options) -> Imported:
    """Read the hourly file. A number of a VM is of one month: the next month's may be another VM."""
    places, width = lines.positions(path, dict.fromkeys(COLUMNS.values(), True))
    wanted = {name: places[source] for name, source in COLUMNS.items()}
    frame = lines.columns(path, wanted, width, skip=1).with_columns(
        vm=polars.concat_str("month", polars.lit("/"), "vm")
    )
    return _imported(path, [_part(path, frame, {})], options, HOURLY, HOUR)


def _part(path: Path, frame: polars.LazyFrame, divisors: Mapping[str, float]) -> _Part:
    """Return a file's VMs. A last line that has no end counts: what it lost is of fields that are not read."""
    values = {name: polars.col(name).cast(polars.Float64, strict=False) / divisors.get(name, 1.0) for name in MEASURED}
    sound = polars.col(lines.WIDTH) & polars.col("vm").is_not_null()
    for value in values.values():
        sound &= value.is_finite() & (value >= 0)
    judged = frame.select(lines.ROW, "vm", sound.fill_null(False).alias("sound"), **values)
    bad = ~polars.col("sound")
    counted = judged.select(
        polars.len(), bad.sum().alias("bad"), polars.col(lines.ROW).filter(bad).min().alias("first")
    )
    try:
        told, vms = polars.collect_all([counted, _by_vm(judged.filter("sound"))], engine="streaming")
    except lines.BROKEN as error:
        raise lines.unreadable(path, error) from error
    total, wrong, first = told.row(0)
    return _Part(path.name, total, wrong, int(first or 0), vms.sort(lines.ROW))


def _by_vm(sound: polars.LazyFrame) -> polars.LazyFrame:
    used, provisioned = polars.col("used").max(), polars.col("mib").max()
    return sound.group_by("vm").agg(
        polars.col(lines.ROW).min().cast(polars.Int64),
        polars.col("seconds").min().alias("start_seconds"),
        polars.col("seconds").max().alias("end_seconds"),
        polars.col("vcpus").max(),
        provisioned.alias("memory_mib"),
        polars.col("load").mean().clip(upper_bound=100).alias("load_percent"),
        (100 * (1 - used / provisioned)).clip(0, 100).alias("untouched_percent"),
    )


def _imported(source: Path, parts: Sequence[_Part], options: Options, origin: str, step: int) -> Imported:
    found = polars.concat([part.vms for part in parts])
    last = found["end_seconds"].max()
    end = None if last is None else float(last)  # type: ignore[arg-type]
    running = polars.col("end_seconds") > (end or 0) - step
    made = rows.imported(
        source,
        found.lazy().with_columns(polars.when(~running).then(polars.col("end_seconds") + step)),
        options,
        origin,
        end_seconds=None if end is None else end + step,
        notes=("untouched memory is an upper bound: what counts as used was active",),
    )
    bad = [part for part in parts if part.bad]
    measurements = [Dropped(f"{BAD} (in {bad[0].name})", sum(part.bad for part in bad), bad[0].first)] if bad else []
    trace = replace(made.trace, dropped=(*measurements, *made.trace.dropped))
    return Imported(trace, sum(part.rows for part in parts), made.notes)
