"""From instances of a cloud, with times as they were, to a trace of one window of time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars

from pondstack.planner.traces import lines, rows
from pondstack.planner.traces.imported import Hosts, Imported, Options

_FRAME = {
    lines.ROW: polars.Int64,
    rows.ID: polars.Utf8,
    "start_seconds": polars.Float64,
    "end_seconds": polars.Float64,
    "vcpus": polars.Float64,
    "memory_mib": polars.Float64,
    "untouched_percent": polars.Float64,
    "group": polars.Utf8,
    "launched": polars.Boolean,
}


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance; times by the cloud's clock, in UTC. `started` None: it never was. `ended` None: it still runs.

    `uuid` None: its row has none, and is dropped.
    """

    uuid: str | None
    project_id: str
    vcpus: float | None
    memory_mib: float | None
    started: datetime | None
    ended: datetime | None
    untouched_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is read. What began before it is there from its beginning on."""

    since: datetime
    until: datetime


def imported(
    source: str,
    instances: Iterable[Instance],
    window: Window,
    options: Options,
    origin: str,
    notes: Sequence[str] = (),
    hosts: Hosts | None = None,
) -> Imported:
    """Return the trace. Row numbers are those of the instances as they came. Raises BadRequest where none is left."""
    found = [_row(number, item, window) for number, item in enumerate(instances, 1)]
    frame = polars.DataFrame(found, schema=_FRAME, orient="row")
    before = frame.filter(polars.col("start_seconds") < 0, polars.col("end_seconds").fill_null(0) >= 0).height
    early = f"{before} instances began before {_day(window.since)} and are there from the beginning"
    return rows.imported(
        source,
        frame.with_columns(polars.col("start_seconds").clip(lower_bound=0)).lazy(),
        options,
        origin,
        rules=[
            ("it never started", ~polars.col("launched")),
            (f"it ended before {_day(window.since)}, when the trace begins", polars.col("end_seconds") < 0),
        ],
        end_seconds=(window.until - window.since).total_seconds(),
        notes=(*notes, *([early] if before else [])),
        hosts=hosts,
    )


def _row(number: int, item: Instance, window: Window) -> tuple[object, ...]:
    return (
        number,
        item.uuid,
        None if item.started is None else (item.started - window.since).total_seconds(),
        None if item.ended is None else (item.ended - window.since).total_seconds(),
        item.vcpus,
        item.memory_mib,
        item.untouched_percent,
        item.project_id or None,
        item.started is not None,
    )


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")
