"""Plain CSV and Parquet with the columns of a trace: for what has no format of its own, and what imports write.

A Parquet file that an import wrote has in its metadata where it is from, what was dropped, when the trace ends, and the
hosts of its cloud. `id` may be there besides: each id counts once.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars

from pondstack.domain.errors import BadRequest
from pondstack.planner.trace import Dropped, Trace
from pondstack.planner.traces import lines, rows
from pondstack.planner.traces.formats import CSV, PARQUET
from pondstack.planner.traces.imported import Hosts, Imported, Options

REQUIRED = ("start_seconds", "vcpus", "memory_mib")
KEY = "pondstack.planner"
VERSION = 1


def read_csv(path: Path, options: Options) -> Imported:
    """Read CSV with a header; columns that are not known are not read."""
    names = {name: name in REQUIRED for name in (*rows.SCHEMA, rows.ID)}
    places, width = lines.positions(path, names)
    return rows.imported(path, lines.columns(path, places, width, skip=1), options, CSV)


def read_parquet(path: Path, options: Options) -> Imported:
    """Read Parquet, of an import or with the same columns."""
    try:
        frame = polars.scan_parquet(path, row_index_name=lines.ROW, row_index_offset=1)
        present, metadata = frame.collect_schema(), polars.read_parquet_metadata(path)
    except lines.BROKEN as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise lines.unreadable(path, error) from error
    missing = [name for name in REQUIRED if name not in present]
    strange = [
        f"{name} ({present[name]})"
        for name in rows.NUMBERS
        if name in present and not (present[name].is_numeric() or present[name] in (polars.Utf8, polars.Null))
    ]
    if missing or strange:
        what = f"lacks {', '.join(missing)}" if missing else f"has no numbers in {', '.join(strange)}"
        raise BadRequest(f"{path} {what}; it has {', '.join(present.names())[:300]}")
    known = [name for name in (lines.ROW, *rows.SCHEMA, rows.ID) if name in present]
    own = _own(path, metadata.get(KEY))
    end = own.get("end_of_trace_seconds") if options.end_seconds is None else None
    found = rows.imported(path, frame.select(known), options, own.get("origin", PARQUET), end_seconds=end)
    return _with(found, own, options) if own else found


def write(found: Imported, path: Path) -> None:
    """Write a trace with where it is from; raises OSError."""
    trace = found.trace
    own = {
        "version": VERSION,
        "name": trace.name,
        "origin": trace.origin,
        "end_of_trace_seconds": trace.end_of_trace_seconds,
        "rows": found.rows,
        "dropped": [asdict(item) for item in trace.dropped],
        "notes": list(found.notes),
        "hosts": None if found.hosts is None else asdict(found.hosts),
    }
    new = path.with_name(f"{path.name}.new")
    trace.servers.write_parquet(new, metadata={KEY: json.dumps(own)})
    new.replace(path)


def _own(path: Path, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        own = json.loads(text)
        version = own["version"]
        if version != VERSION:
            raise BadRequest(f"{path} is of version {version} of this format, and {VERSION} is known: import it again")
        Dropped(**own["dropped"][0]) if own["dropped"] else None
        Hosts(**own["hosts"]) if own["hosts"] else None
        return {**own, "end_of_trace_seconds": int(own["end_of_trace_seconds"]), "rows": int(own["rows"])}
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequest(f"{path}: what {KEY} says in its metadata is damaged ({error!r}): import it again") from error


def _with(found: Imported, own: dict[str, Any], options: Options) -> Imported:
    former = tuple(Dropped(**item) for item in own["dropped"])
    trace = Trace(
        options.name or own["name"],
        found.trace.origin,
        found.trace.servers,
        found.trace.end_of_trace_seconds,
        former + found.trace.dropped,
    )
    hosts = Hosts(**own["hosts"]) if own["hosts"] else None
    return Imported(trace, own["rows"], (*own["notes"], *found.notes), hosts)
