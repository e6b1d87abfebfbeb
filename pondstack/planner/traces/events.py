"""From events of things (instances, tasks, containers), each with a time, to a row for each run of them.

A run begins where a thing is there that was not, and ends where it goes. Where it is there with another size, one run
ends and another one begins: a server of a trace has one size. Events are read in pieces; memory is used for those that
tell of a start, an end or a size, and not for the files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars

from pondstack.planner.trace import Dropped
from pondstack.planner.traces import lines, rows
from pondstack.planner.traces.imported import Imported, Options

ID, AT, USED, THERE, SINCE = rows.ID, "at", "used", "there", "since"
_TOLD = "told"
_KEPT = {
    lines.ROW: polars.Int64,
    ID: polars.UInt64,
    AT: polars.Float64,
    THERE: polars.Boolean,
    "vcpus": polars.Float32,
    "memory_mib": polars.Float64,
    "group": polars.Utf8,
    SINCE: polars.Float64,
}


@dataclass(frozen=True)
class Part:
    """What one file tells. `rows`: of the file; `unused`: those of events that are of no interest here."""

    rows: int
    unused: int
    kept: polars.DataFrame
    dropped: tuple[Dropped, ...]


def part(path: Path, frame: polars.LazyFrame, rules: Sequence[tuple[str, polars.Expr]] = (), before: int = 0) -> Part:
    """Return the events of a file; raises BadRequest where it cannot be read, OSError.

    `frame`: `row`; `id` as text; `at` in seconds; `used`, whether the event is of interest, null: its type is not
    known; `there`, whether the thing is there from then on; `vcpus`, `memory_mib`; `group` and `since` (in seconds: it
    had been there before its first event) where the source has them; `width` and `cut` of lines. `rules`: further
    reasons to drop an event that is of interest. `before`: rows of the files before it, which are counted on.
    """
    present = frame.collect_schema().names()
    absent = [polars.lit(None, _KEPT[name]).alias(name) for name in ("group", SINCE) if name not in present]
    judged = frame.with_columns(polars.col(lines.ROW).cast(polars.Int64) + before, *absent).with_columns(
        rows.reason(_rules(present, rules))
    )
    sound = polars.col(rows.REASON).is_null()
    kept = judged.filter(sound & polars.col(USED)).select(
        polars.col(ID).hash() if name == ID else polars.col(name).cast(kind) for name, kind in _KEPT.items()
    )
    bad = judged.filter(~sound).group_by(rows.REASON)
    counted = judged.select(polars.len(), (sound & ~polars.col(USED)).sum().alias("unused"))
    reasons = bad.agg(polars.len().alias("rows"), polars.col(lines.ROW).min().alias("first"))
    try:
        numbers, found, why = polars.collect_all([counted, kept, reasons], engine="streaming")
    except FileNotFoundError:
        raise
    except lines.BROKEN as error:
        raise lines.unreadable(path, error) from error
    dropped = tuple(Dropped(item[rows.REASON], item["rows"], item["first"]) for item in why.to_dicts())
    every, unused = numbers.row(0)
    return Part(every, unused, found, dropped)


def _rules(present: Sequence[str], more: Sequence[tuple[str, polars.Expr]]) -> list[tuple[str, polars.Expr]]:
    column, used = polars.col, polars.col(USED)
    here = used & column(THERE)
    return [
        *lines.rules(present),
        *((why, used & wrong) for why, wrong in more),
        ("its type of event is not known", used.is_null()),
        ("its id is missing", used & column(ID).is_null()),
        ("its time is no number within 3,000 years", used & ~column(AT).abs().le(rows.MOST_SECONDS).fill_null(False)),
        (rows.BAD_VCPUS, here & ~rows.sound_vcpus()),
        (rows.BAD_MEMORY, here & ~rows.sound_memory()),
    ]


def parts(
    files: Sequence[Path], frame: Callable[[Path], polars.LazyFrame], rules: Sequence[tuple[str, polars.Expr]] = ()
) -> list[Part]:
    """Return the events of files, one after the other; rows are counted on across them. See part."""
    found: list[Part] = []
    for path in files:
        found.append(part(path, frame(path), rules, before=sum(item.rows for item in found)))
    return found


def imported(source: Path, found: Sequence[Part], options: Options, origin: str, notes: Sequence[str] = ()) -> Imported:
    """Return the trace of a source; its end is the latest event. Raises BadRequest where no run is left."""
    kept = polars.concat([item.kept for item in found])
    runs, orphans, same = _runs(kept)
    dropped = _summed([item for one in found for item in one.dropped] + orphans)
    number = sum(item.rows for item in found)
    if runs.is_empty():
        raise rows.nothing(source, number, dropped)
    unused = sum(item.unused for item in found)
    told = f"{kept.height} events tell of {runs.height} runs; {unused} other events were not needed"
    again = [f"{same} events tell nothing new of what was there already"] if same else []
    last = kept.select(polars.col(AT).max()).item()
    made = rows.imported(source, runs.lazy(), options, origin, end_seconds=last, notes=(told, *again, *notes))
    all_dropped = tuple(_summed([*dropped, *made.trace.dropped]))
    return replace(made, rows=number, trace=replace(made.trace, dropped=all_dropped))


def _summed(found: Sequence[Dropped]) -> list[Dropped]:
    """Return one item for each reason, by the first row."""
    by_reason: dict[str, Dropped] = {}
    for item in found:
        other = by_reason.get(item.reason)
        by_reason[item.reason] = (
            item
            if other is None
            else Dropped(item.reason, item.rows + other.rows, min(item.first_row, other.first_row))
        )
    return sorted(by_reason.values(), key=lambda item: item.first_row)


def _runs(kept: polars.DataFrame) -> tuple[polars.DataFrame, list[Dropped], int]:
    """Return the runs, what ends and had not started, and how many events told nothing new."""
    ordered = _with_former(kept.sort(ID, AT, lines.ROW))
    first = _first()
    before = polars.col(THERE).shift().fill_null(False) & ~first
    other = polars.any_horizontal(
        polars.col(name).ne_missing(polars.col(name).shift()) for name in ("vcpus", "memory_mib")
    )
    marked = ordered.with_columns(opens=polars.col(THERE) & (~before | other), before=before)
    orphans = marked.filter(~polars.col(THERE) & ~polars.col("before"))
    why = "it ends what had not started, or had ended"
    dropped = [Dropped(why, orphans.height, int(orphans[lines.ROW].min()))] if orphans.height else []  # type: ignore[arg-type]
    same = marked.filter(polars.col(THERE) & ~polars.col("opens") & ~polars.col(_TOLD)).height
    edges = marked.filter(polars.col("opens") | (~polars.col(THERE) & polars.col("before")))
    runs = edges.with_columns(
        end_seconds=polars.when(polars.col(ID).shift(-1) == polars.col(ID)).then(polars.col(AT).shift(-1))
    ).filter(THERE)
    return (
        runs.select(lines.ROW, polars.col(AT).alias("start_seconds"), "end_seconds", "vcpus", "memory_mib", "group"),
        dropped,
        same,
    )


def _first() -> polars.Expr:
    return (polars.col(ID) != polars.col(ID).shift()).fill_null(True)


def _with_former(ordered: polars.DataFrame) -> polars.DataFrame:
    """Add, ahead of the first event of what had been there already, that it was: from the first event of all on."""
    begin = polars.lit(ordered.select(polars.col(AT).min()).item(), polars.Float64)
    marked = ordered.with_columns((_first() & polars.col(SINCE).is_not_null()).alias(_TOLD))
    former = marked.filter(_TOLD).with_columns(
        polars.min_horizontal(polars.max_horizontal(SINCE, begin), AT).alias(AT),
        polars.lit(True).alias(THERE),
        polars.lit(False).alias(_TOLD),
    )
    return polars.concat([former, marked]).sort(ID, AT, lines.ROW, maintain_order=True)
