"""VM requests of Azure V1 as they were processed for generators of traces (Bergsma et al., SOSP'21).

CSV with a header: arrival_s, cores, mem_gb, dur_lo_s, dur_hi_s, and where it is there batch_id (the tenant's batch)
and censored (1: it outlived the observation). Arrivals are known to 300 s and lifetimes by bounds: both are drawn
evenly from within, by the seed. Such a trace begins with an empty cloud: it needs a warm-up. Load and untouched memory
are not in it.
"""

from pathlib import Path

import polars

from pondstack.planner.traces import chance, lines, rows
from pondstack.planner.traces.imported import Imported, Options

NAME = "azure-requests"
BIN_SECONDS = 300
SOURCES = {
    "start_seconds": "arrival_s",
    "vcpus": "cores",
    "memory_mib": "mem_gb",
    "low": "dur_lo_s",
    "high": "dur_hi_s",
    "group": "batch_id",
    "censored": "censored",
}
OPTIONAL = ("batch_id", "censored")


def read(path: Path, options: Options) -> Imported:
    """Read the requests. The trace ends with the last arrivals: what ends later still runs then."""
    places, width = lines.positions(path, {source: source not in OPTIONAL for source in SOURCES.values()})
    wanted = {name: places[source] for name, source in SOURCES.items() if source in places}
    frame = _drawn(lines.columns(path, wanted, width, skip=1), options.seed)
    return rows.imported(
        path,
        frame,
        options,
        NAME,
        scales={"memory_mib": 1024.0},
        rules=[("dur_lo_s and dur_hi_s are no bounds of a lifetime", polars.col("unbounded"))],
        last_start="arrival",
        notes=(f"arrivals and lifetimes were drawn from within their bounds by seed {options.seed}",),
    )


def _drawn(frame: polars.LazyFrame, seed: int) -> polars.LazyFrame:
    low, high, arrival = (lines.number(name) for name in ("low", "high", "start_seconds"))
    start = arrival + chance.uniform(polars.col(lines.ROW), 2 * seed) * BIN_SECONDS
    lifetime = low + chance.uniform(polars.col(lines.ROW), 2 * seed + 1) * (high - low)
    known = low.is_between(0, high) & (high <= rows.MOST_SECONDS)
    ended = polars.lit(True) if "censored" not in frame.collect_schema() else polars.col("censored").ne_missing("1")
    return frame.with_columns(
        start_seconds=start,
        end_seconds=polars.when(ended).then(start + lifetime),
        unbounded=~known.fill_null(False),
        arrival=arrival + BIN_SECONDS,
    )
