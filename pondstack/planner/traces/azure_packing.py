"""Azure trace for packing, 2020: a SQLite database with the tables vm and vmType (Hadary et al., OSDI'20).

Sizes are shares of a machine, times are days; VMs that were there before have starts below 0, and VMs that outlived the
data have no end. A type has a size for each kind of machine that it can run on: their mean counts here, times the host
that the user gives. Load and untouched memory are not in it; the group is the tenant. Starts end after 14 days.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import polars

from pondstack.domain.errors import BadRequest
from pondstack.planner.traces import lines, rows
from pondstack.planner.traces.imported import Imported, Options

NAME = "azure-packing"
DAY = 86_400
DAYS = 14
GIB_MIB = 1024
QUERY = """
SELECT vm.rowid, CAST(vm.vmId AS TEXT), CAST(vm.tenantId AS TEXT), CAST(vm.starttime AS TEXT),
       CAST(vm.endtime AS TEXT), type.core, type.memory
FROM vm LEFT JOIN (
    SELECT vmTypeId, avg(core) AS core, avg(memory) AS memory FROM vmType GROUP BY vmTypeId
) AS type ON type.vmTypeId = vm.vmTypeId
ORDER BY vm.rowid
"""
SCHEMA = {
    lines.ROW: polars.Int64,
    rows.ID: polars.Utf8,
    "group": polars.Utf8,
    "start_seconds": polars.Utf8,
    "end_seconds": polars.Utf8,
    "vcpus": polars.Float64,
    "memory_mib": polars.Float64,
}
AT_ONCE = 100_000


def read(path: Path, options: Options) -> Imported:
    """Read the database; raises BadRequest, without the size of a host as well."""
    options.check_host(path)
    pieces = list(_pieces(path))
    frame = polars.concat(pieces) if pieces else polars.DataFrame(schema=SCHEMA)
    start = polars.col("start_seconds").cast(polars.Float64, strict=False)
    before = frame.filter(start < 0).height
    unknown = "its vmTypeId is not in vmType"
    return rows.imported(
        path,
        frame.lazy().with_columns(
            polars.when(start < 0).then(polars.lit("0")).otherwise("start_seconds").alias("start_seconds"),
            untyped=polars.col("vcpus").is_null(),
        ),
        options,
        NAME,
        scales={
            "start_seconds": DAY,
            "end_seconds": DAY,
            "vcpus": options.host_vcpus,
            "memory_mib": options.host_gib * GIB_MIB,
        },
        rules=[(unknown, polars.col("untyped")), ("it ended before the trace begins", polars.col("end_seconds") < 0)],
        end_seconds=DAYS * DAY,
        notes=(
            f"sizes are shares of a host with {options.host_vcpus} vCPUs and {options.host_gib:g} GiB, the mean of the "
            "machines that a type runs on",
            f"{before} VMs were there before and start at 0",
        ),
    )


def _pieces(path: Path) -> Iterator[polars.DataFrame]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as database:
            found = database.execute(QUERY)
            while rows_read := found.fetchmany(AT_ONCE):
                yield polars.DataFrame(rows_read, schema=SCHEMA, orient="row")
    except sqlite3.Error as error:
        raise BadRequest(
            f"{path} is no database of the packing trace: {error}; wanted are the tables vm and vmType"
        ) from error
