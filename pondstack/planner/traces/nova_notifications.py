"""Logs of Nova's notifications, one in each line, as oslo.messaging's driver `log` writes them.

Words of the log ahead of the JSON are no fault, and neither is the envelope of other drivers (`oslo.message`). Both
forms are read, and each may be in a log with the other:

- versioned ([notifications] notification_format = versioned): event_type `instance.create.end`, and in
  payload.nova_object.data uuid, tenant_id, state, launched_at, and flavor.nova_object.data with vcpus and memory_mb
  (nova/notifications/objects/instance.py, InstancePayload 1.9 and FlavorPayload 1.4);
- unversioned: event_type `compute.instance.create.end`, and in payload instance_id, tenant_id, state, launched_at,
  vcpus and memory_mb (nova/notifications/base.py, info_from_instance).

An instance is there with the end of create, resize (finish, confirm, revert), live migration, evacuation, rebuild,
unshelving and restoring, and with `exists`; it goes with the end of delete and of offloading a shelved one. What was
launched before the log begins is there from its beginning on. A resize ends one server of the trace and begins another.
Other notifications are not needed. What is untouched is not known; the group is the project.
"""

from pathlib import Path

import polars

from pondstack.planner.traces import events, lines
from pondstack.planner.traces.imported import Imported, Options

NAME = "nova-notifications"
_DATA = "$.payload['nova_object.data']"
_FLAVOR = f"{_DATA}.flavor['nova_object.data']"
FIELDS = {
    "type": ("$.event_type",),
    "time": ("$.timestamp",),
    "uuid": (f"{_DATA}.uuid", "$.payload.instance_id"),
    "project": (f"{_DATA}.tenant_id", "$.payload.tenant_id"),
    "state": (f"{_DATA}.state", "$.payload.state"),
    "launched": (f"{_DATA}.launched_at", "$.payload.launched_at"),
    "vcpus": (f"{_FLAVOR}.vcpus", "$.payload.vcpus"),
    "memory": (f"{_FLAVOR}.memory_mb", "$.payload.memory_mb"),
}
PREFIX = r"^(compute\.)?instance\."
EXISTS = "exists"
THERE = (
    "create.end",
    "resize_finish.end",
    "finish_resize.end",
    "resize_confirm.end",
    "resize.confirm.end",
    "resize_revert.end",
    "resize.revert.end",
    "live_migration_post.end",
    "live_migration._post.end",
    "live_migration_post_dest.end",
    "live_migration.post.dest.end",
    "evacuate.end",
    "rebuild.end",
    "unshelve.end",
    "restore.end",
    EXISTS,
)
"""Without the prefix; of two names for one act, the first one is the versioned one."""
GONE = ("delete.end", "shelve_offload.end")
NOT_THERE = ("deleted", "shelved_offloaded")
"""States of instances that `exists` tells of, and that have no host."""
TIME = "%Y-%m-%d %H:%M:%S%.f"


def read(path: Path, options: Options) -> Imported:
    """Read a log, or a folder's (*.log, *.json, *.jsonl, also .gz), whose rows are counted on. Raises BadRequest."""
    endings = [f"{name}{packed}" for name in (".log", ".json", ".jsonl") for packed in ("", ".gz")]
    unlaunched = polars.col(events.THERE) & polars.col("launched").is_null()
    parts = events.parts(lines.files(path, *endings), _frame, [("it is there and was never launched", unlaunched)])
    return events.imported(path, parts, options, NAME, ("an instance is known from its first notification on",))


def _frame(path: Path) -> polars.LazyFrame:
    kind = polars.col("type").str.replace(PREFIX, "")
    named = polars.col("type").str.contains(PREFIX)
    gone = (kind == EXISTS) & polars.col("state").is_in(NOT_THERE).fill_null(False)
    return lines.objects(path, FIELDS).select(
        lines.ROW,
        lines.WHOLE,
        lines.CUT,
        polars.col("uuid").alias(events.ID),
        _seconds("time").alias(events.AT),
        (named & kind.is_in([*THERE, *GONE]) & ~gone).alias(events.USED),
        kind.is_in(THERE).alias(events.THERE),
        polars.col("vcpus").cast(polars.Float64, strict=False),
        polars.col("memory").cast(polars.Float64, strict=False).alias("memory_mib"),
        polars.col("project").alias("group"),
        polars.col("launched"),
        _seconds("launched").alias(events.SINCE),
    )


def _seconds(name: str) -> polars.Expr:
    """Return a time of Nova's, in UTC, which it writes with T or a blank, and with Z, +00:00 or nothing at its end."""
    text = polars.col(name).str.replace("T", " ", literal=True).str.replace(r"(Z|\+00:?00)$", "")
    return text.str.to_datetime(TIME, strict=False, time_unit="us").dt.epoch("us") / 1e6
