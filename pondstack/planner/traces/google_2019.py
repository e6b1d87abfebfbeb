"""Google's ClusterData2019: the table instance_events of a cell as lines of JSON, in a file or a folder of files.

That is how BigQuery exports a table with nested fields. Fields: time (microseconds), type, collection_id,
collection_type (1: alloc set), alloc_collection_id (0 or nothing: in no alloc), instance_index, resource_request.cpus
and .memory (as shares of the largest machine), and others (message InstanceEvent of clusterdata_trace_format_v3.proto
in google/cluster-data; Tirmazi et al., EuroSys'20). Types are numbers or the names of the enumeration. An instance is
there from SCHEDULE or UPDATE_RUNNING on, until EVICT, FAIL, FINISH, KILL or LOST. Tasks within an alloc have its
resources: the alloc's instance counts, and they do not. Load and untouched memory are in another table, which is not
read; the group is the collection, as users are in another table too.
"""

from pathlib import Path

import polars

from pondstack.planner.traces import events, lines
from pondstack.planner.traces.imported import Imported, Options

NAME = "google-2019"
FIELDS = {
    "time": ("$.time",),
    "type": ("$.type",),
    "collection": ("$.collection_id",),
    "alloc": ("$.alloc_collection_id",),
    "instance": ("$.instance_index",),
    "cpus": ("$.resource_request.cpus",),
    "memory": ("$.resource_request.memory",),
}
THERE = ("3", "SCHEDULE", "10", "UPDATE_RUNNING")
GONE = ("4", "EVICT", "5", "FAIL", "6", "FINISH", "7", "KILL", "8", "LOST")
UNUSED = ("0", "SUBMIT", "1", "QUEUE", "2", "ENABLE", "9", "UPDATE_PENDING")
AFTER = float(1 << 63) - 1
MICROSECONDS = 1e6
GIB_MIB = 1024


def read(path: Path, options: Options) -> Imported:
    """Read a file, or a folder's, whose rows are counted on. Raises BadRequest, without the size of a host as well."""
    options.check_host(path)
    rules = [
        ("its time is after the trace", polars.col("after").fill_null(False)),
        ("it runs within an alloc, whose instance counts", polars.col("alloc").is_not_null()),
    ]
    files = lines.files(path, ".json", ".json.gz", ".jsonl", ".jsonl.gz")
    parts = events.parts(files, lambda file: _frame(file, options), rules)
    note = (
        f"sizes are shares of a host with {options.host_vcpus} vCPUs and {options.host_gib:g} GiB; servers are tasks "
        "and instances of allocs"
    )
    return events.imported(path, parts, options, NAME, (note,))


def _frame(path: Path, options: Options) -> polars.LazyFrame:
    kind, alloc, time = polars.col("type"), polars.col("alloc"), lines.number("time")
    return lines.objects(path, FIELDS).select(
        lines.ROW,
        lines.WHOLE,
        lines.CUT,
        polars.concat_str("collection", polars.lit("/"), "instance").alias(events.ID),
        (time / MICROSECONDS).alias(events.AT),
        (time >= AFTER).alias("after"),
        polars.when(alloc != "0").then(alloc).alias("alloc"),
        polars.when(kind.is_in([*THERE, *GONE, *UNUSED])).then(~kind.is_in(UNUSED)).alias(events.USED),
        kind.is_in(THERE).alias(events.THERE),
        (lines.number("cpus") * options.host_vcpus).alias("vcpus"),
        (lines.number("memory") * options.host_gib * GIB_MIB).alias("memory_mib"),
        polars.col("collection").alias("group"),
    )
