"""Alibaba's cluster traces of 2017 and 2018: their containers of online services, as CSV without a header.

`alibaba-2017` is container_event.csv: ts (seconds; 0: before the trace), event (Create or Remove), instance, machine,
cores, memory and disk (shares of the largest machine's, 0 to 1), CPU set (alibaba/clusterdata,
cluster-trace-v2017/trace_201708.md). `alibaba-2018` is container_meta.csv: container, machine, time stamp (seconds;
0: before or after the trace), application, status, CPU request and limit (100 is a core), memory (0 to 100 % of the
largest machine's) (cluster-trace-v2018/schema.md and trace_2018.md). There, a container is there
with its first row that says `allocated` or `started`, and gone with `stopped`. Batch jobs are not read: their tables
have times of instances without what they asked for, or what they asked for without times of each. Load is in other
tables, which are not read; what is untouched is not known. The group is the application; 2017 has none.
"""

from pathlib import Path

import polars

from pondstack.planner.traces import events, lines
from pondstack.planner.traces.imported import Imported, Options

V2017, V2018 = "alibaba-2017", "alibaba-2018"
WIDTH = 8
COLUMNS_2017 = {"time": 0, "type": 1, "container": 2, "cpus": 4, "memory": 5}
COLUMNS_2018 = {"container": 0, "time": 2, "application": 3, "type": 4, "cpus": 5, "memory": 7}
GIB_MIB = 1024
CORE, PERCENT = 100, 100
INVALID = 101
"""What stands for a value that is none in 2018, besides -1."""


def v2017(path: Path, options: Options) -> Imported:
    """Read container_event.csv; raises BadRequest, without the memory of a host as well."""
    options.check_host(path, vcpus=False)
    kind = polars.col("type").str.to_lowercase()
    frame = lines.columns(path, COLUMNS_2017, WIDTH, skip=0).select(
        lines.ROW,
        lines.WIDTH,
        lines.CUT,
        polars.col("container").alias(events.ID),
        lines.number("time").alias(events.AT),
        polars.when(kind.is_in(["create", "remove"])).then(True).alias(events.USED),
        (kind == "create").alias(events.THERE),
        lines.number("cpus").alias("vcpus"),
        (lines.number("memory") * options.host_gib * GIB_MIB).alias("memory_mib"),
    )
    return events.imported(path, [events.part(path, frame)], options, V2017, (_note(options),))


def v2018(path: Path, options: Options) -> Imported:
    """Read container_meta.csv; raises BadRequest, without the memory of a host as well."""
    options.check_host(path, vcpus=False)
    kind = polars.col("type")
    frame = lines.columns(path, COLUMNS_2018, WIDTH, skip=0).select(
        lines.ROW,
        lines.WIDTH,
        lines.CUT,
        polars.col("container").alias(events.ID),
        lines.number("time").alias(events.AT),
        polars.when(kind.is_in(["allocated", "started", "stopped"])).then(True).alias(events.USED),
        (kind != "stopped").alias(events.THERE),
        (lines.number("cpus") / CORE).alias("vcpus"),
        (lines.number("memory") / PERCENT * options.host_gib * GIB_MIB).alias("memory_mib"),
        polars.col("application").alias("group"),
        (lines.number("memory") >= INVALID).fill_null(False).alias("invalid"),
    )
    here = polars.col(events.THERE)
    rules = [
        ("its memory is marked as invalid", here & polars.col("invalid")),
        ("it stopped at 0, which is before or after the trace", ~here & (polars.col(events.AT) == 0)),
    ]
    note = "time 0 of a container that is there counts as before the trace"
    return events.imported(path, [events.part(path, frame, rules)], options, V2018, (_note(options), note))


def _note(options: Options) -> str:
    return f"memory is a share of a host with {options.host_gib:g} GiB; servers are containers"
