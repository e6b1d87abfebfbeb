"""From rows of any source to a trace: what is no server is dropped, and counted by its reason."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped, Trace
from pondstack.planner.traces import lines
from pondstack.planner.traces.imported import Hosts, Imported, Options

ID, REASON, ROW = "id", "reason", lines.ROW
NUMBERS = ("start_seconds", "end_seconds", "vcpus", "memory_mib", "load_percent", "untouched_percent")
OPTIONAL = ("end_seconds", "load_percent", "untouched_percent")
MOST_SECONDS = 1e11
MOST_VCPUS = 65_536
MOST_MIB = 1 << 40
BAD_VCPUS = f"vcpus is not over 0 and up to {MOST_VCPUS}"
BAD_MEMORY = f"memory_mib is not from 1 to {MOST_MIB}"
SCHEMA: Mapping[str, Any] = {
    "start_seconds": polars.Int64,
    "end_seconds": polars.Int64,
    "vcpus": polars.Float32,
    "memory_mib": polars.Int64,
    "load_percent": polars.Float32,
    "untouched_percent": polars.Float32,
    "group": polars.Utf8,
}
"""Columns of a trace's servers, see pondstack.planner.trace."""


def imported(
    source: Path | str,
    frame: polars.LazyFrame,
    options: Options,
    origin: str,
    *,
    scales: Mapping[str, float] | None = None,
    rules: Sequence[tuple[str, polars.Expr]] = (),
    end_seconds: float | None = None,
    last_start: str | None = None,
    notes: Sequence[str] = (),
    hosts: Hosts | None = None,
) -> Imported:
    """Return the trace of rows, in order of start, the first start at 0.

    `frame`: `row` (a number that users find again), and columns of a trace, as text or numbers, those that are missing
    being unknown; `id` where rows have one, of which each counts once. `scales`: factors of columns. `rules`: further
    reasons to drop a row, over columns as numbers. `end_seconds`: of the trace, in the source's time; servers that end
    later still run then. `last_start`: the column whose greatest value is that end. Raises BadRequest where no row is
    left.
    """
    present = frame.collect_schema().names()
    typed = frame.with_columns(*_numbers(present, scales or {}), *_absent(present), *_raw(present))
    all_rules = [*rules, *_rules(present)]
    judged = typed.with_columns(reason(all_rules))
    try:
        rows, good, dropped = _collect(judged, [why for why, _ in all_rules], present, last_start)
    except lines.BROKEN as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise lines.unreadable(Path(source), error) from error
    good, repeated = _once(good, ID in present)
    dropped += repeated
    if good.is_empty():
        raise nothing(source, rows, dropped)
    if last_start is not None:
        end_seconds = good["last"].max()  # type: ignore[assignment]
    end = end_seconds if options.end_seconds is None else options.end_seconds
    servers, ends, more, late = _placed(good, end)
    dropped = sorted([*dropped, *late], key=lambda item: item.first_row)
    if servers.is_empty():
        raise nothing(source, rows, dropped)
    trace = Trace(options.name or Path(source).name, origin, servers, ends, tuple(dropped))
    return Imported(trace, rows, (*notes, *more), hosts)


def nothing(source: Path | str, rows: int, dropped: Sequence[Dropped]) -> BadRequest:
    """Return why a source has no server."""
    why = "; ".join(f"{item.rows} rows: {item.reason} (first: {item.first_row})" for item in dropped)
    return BadRequest(f"{source}: none of its {rows} rows is a server. {why or 'It is empty'}; is it that format?")


def _numbers(present: Sequence[str], scales: Mapping[str, float]) -> list[polars.Expr]:
    return [
        polars.col(name).cast(polars.Float64, strict=False) * scales.get(name, 1.0)
        for name in NUMBERS
        if name in present
    ]


def _absent(present: Sequence[str]) -> list[polars.Expr]:
    return [
        polars.lit(None, polars.Utf8 if name == "group" else polars.Float64).alias(name)
        for name in SCHEMA
        if name not in present
    ]


def _raw(present: Sequence[str]) -> list[polars.Expr]:
    """Keep whether an optional value was there at all: what was, and is no number, is no unknown value."""
    return [polars.col(name).is_not_null().alias(f"{name}_given") for name in OPTIONAL if name in present]


def _rules(present: Sequence[str]) -> list[tuple[str, polars.Expr]]:
    column = polars.col
    named = [("its id is missing", column(ID).is_null())] if ID in present else []
    unread = [
        (f"{name} is no number", column(f"{name}_given") & ~column(name).is_finite().fill_null(False))
        for name in OPTIONAL
        if name in present
    ]
    return [
        *lines.rules(present),
        *named,
        (
            "start_seconds is no number within 3,000 years",
            ~column("start_seconds").abs().le(MOST_SECONDS).fill_null(False),
        ),
        *unread,
        ("end_seconds is no number within 3,000 years", column("end_seconds").abs() > MOST_SECONDS),
        ("it ends before it starts", column("end_seconds") < column("start_seconds")),
        (BAD_VCPUS, ~sound_vcpus()),
        (BAD_MEMORY, ~sound_memory()),
        ("load_percent is not from 0 to 100", ~column("load_percent").is_between(0, 100)),
        ("untouched_percent is not from 0 to 100", ~column("untouched_percent").is_between(0, 100)),
    ]


def sound_vcpus() -> polars.Expr:
    """Say whether the vCPUs of a row can be those of a server."""
    return polars.col("vcpus").is_between(0, MOST_VCPUS, closed="right").fill_null(False)


def sound_memory() -> polars.Expr:
    """Say whether the memory of a row can be that of a server."""
    return polars.col("memory_mib").is_between(1, MOST_MIB).fill_null(False)


def reason(rules: Sequence[tuple[str, polars.Expr]]) -> polars.Expr:
    """Return the column `reason`: the first rule that a row breaks, null where it breaks none."""
    return polars.coalesce(*(polars.when(wrong.fill_null(False)).then(polars.lit(why)) for why, wrong in rules)).alias(
        REASON
    )


def _collect(
    judged: polars.LazyFrame, reasons: Sequence[str], present: Sequence[str], last_start: str | None
) -> tuple[int, polars.DataFrame, list[Dropped]]:
    """Return how many rows there are, the good ones, and why there are no more of these. The rows are read once."""
    kept = [polars.col(ROW).cast(polars.Int64)]
    kept += [polars.col(ID).cast(polars.Utf8).hash().alias(ID)] if ID in present else []
    kept += [polars.col(last_start).alias("last")] if last_start is not None else []
    kept += [
        polars.col("start_seconds").floor().cast(polars.Int64, strict=False),
        polars.col("end_seconds").ceil().cast(polars.Int64, strict=False),
        polars.col("memory_mib").round().cast(polars.Int64, strict=False),
        *(polars.col(name).cast(polars.Float32) for name in ("vcpus", "load_percent", "untouched_percent")),
        # As text it would keep the lines of which it is a part.
        polars.col("group").cast(polars.Utf8).cast(polars.Categorical),
        polars.col(REASON).cast(polars.Enum(list(dict.fromkeys(reasons)))),
    ]
    found = judged.select(kept).collect(engine="streaming")
    wrong = found.select(ROW, REASON).drop_nulls(REASON)
    good = found.filter(polars.col(REASON).is_null()) if wrong.height else found
    counted = wrong.group_by(REASON).agg(polars.len().alias("rows"), polars.col(ROW).min().alias("first"))
    dropped = [Dropped(str(item[REASON]), item["rows"], int(item["first"])) for item in counted.to_dicts()]
    return found.height, _sorted(good.drop(REASON), ROW), dropped


def _sorted(frame: polars.DataFrame, name: str) -> polars.DataFrame:
    """Return it in order of a column, itself where it is: a copy is what it costs."""
    return frame if frame[name].is_sorted() else frame.sort(name, maintain_order=True)


def _once(good: polars.DataFrame, named: bool) -> tuple[polars.DataFrame, list[Dropped]]:
    """Return each server once, the first row of it, and what that dropped."""
    if not named:
        return good, []
    first = good.select(polars.col(ID).is_first_distinct()).to_series()
    repeated = good.filter(~first)
    if repeated.is_empty():
        return good, []
    why = "its id is that of a row before it"
    return good.filter(first), [Dropped(why, repeated.height, int(repeated[ROW][0]))]


def _placed(good: polars.DataFrame, end: float | None) -> tuple[polars.DataFrame, int, list[str], list[Dropped]]:
    """Return servers from 0 on and in order, the end of the trace, what was done for it, and what began after it."""
    notes, dropped = [], []
    start, ended = polars.col("start_seconds"), polars.col("end_seconds")
    back = good.filter(start.diff() < 0)
    if not back.is_empty():
        notes.append(f"{back.height} rows start before the row ahead of them (first: {back[ROW][0]}); all were sorted")
    latest = good.select(polars.max_horizontal(start.max(), ended.max())).item()
    last = latest if end is None else int(end)
    late = good.filter(start > last)
    if not late.is_empty():
        dropped.append(Dropped(f"it starts after the end of the trace at {last} s", late.height, int(late[ROW][0])))
        good = good.filter(start <= last)
    base = int(good["start_seconds"].min()) if good.height else last  # type: ignore[arg-type]
    servers = good.select(
        start - base,
        polars.when(ended <= last).then(ended - base),
        *(name for name in SCHEMA if name not in ("start_seconds", "end_seconds")),
    )
    servers = _sorted(servers, "start_seconds").with_columns(polars.col("group").cast(polars.Utf8))
    return servers, last - base, notes, dropped
