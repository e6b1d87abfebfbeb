"""Google's clusterdata-2011-2: the folder task_events, or one of its files part-?????-of-?????.csv.gz, without header.

Columns: timestamp (microseconds; 0: before the trace, 2^63 - 1: after it; the trace begins at 600 s), missing info,
job, task index, machine, event type, user, scheduling class, priority, CPU and memory request (as shares of the largest
machine), disk request, another machine wanted (Reiss, Wilkes and Hellerstein, "Google cluster-usage traces: format +
schema", version 2.1). A task is there from SCHEDULE (1) or UPDATE_RUNNING (8) on, until EVICT, FAIL, FINISH, KILL or
LOST (2 to 6); SUBMIT (0) and UPDATE_PENDING (7) are not needed. Each run of a task is a server. Load and untouched
memory are in other tables, which are not read; the group is the first 12 characters of the user.
"""

from pathlib import Path

import polars

from pondstack.planner.traces import events, lines
from pondstack.planner.traces.imported import Imported, Options

NAME = "google-2011"
WIDTH = 13
COLUMNS = {"time": 0, "job": 2, "task": 3, "type": 5, "user": 6, "cpus": 9, "memory": 10}
THERE, GONE, UNUSED = ("1", "8"), ("2", "3", "4", "5", "6"), ("0", "7")
AFTER = float(1 << 63) - 1
MICROSECONDS = 1e6
GIB_MIB = 1024
GROUP_CHARACTERS = 12


def read(path: Path, options: Options) -> Imported:
    """Read a file, or a folder's, whose rows are counted on. Raises BadRequest, without the size of a host as well."""
    options.check_host(path)
    rules = [("its time is after the trace", polars.col("after").fill_null(False))]
    parts = events.parts(lines.files(path, ".csv", ".csv.gz"), lambda file: _frame(file, options), rules)
    note = f"sizes are shares of a host with {options.host_vcpus} vCPUs and {options.host_gib:g} GiB; servers are tasks"
    return events.imported(path, parts, options, NAME, (note,))


def _frame(path: Path, options: Options) -> polars.LazyFrame:
    kind, time = polars.col("type"), lines.number("time")
    return lines.columns(path, COLUMNS, WIDTH, skip=0).select(
        lines.ROW,
        lines.WIDTH,
        lines.CUT,
        polars.concat_str("job", polars.lit("/"), "task").alias(events.ID),
        (time / MICROSECONDS).alias(events.AT),
        (time >= AFTER).alias("after"),
        polars.when(kind.is_in([*THERE, *GONE, *UNUSED])).then(~kind.is_in(UNUSED)).alias(events.USED),
        kind.is_in(THERE).alias(events.THERE),
        (lines.number("cpus") * options.host_vcpus).alias("vcpus"),
        (lines.number("memory") * options.host_gib * GIB_MIB).alias("memory_mib"),
        polars.col("user").str.slice(0, GROUP_CHARACTERS).alias("group"),
    )
