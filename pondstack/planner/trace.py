"""A cloud's history of servers, as loaders give it and the replay takes it."""

from dataclasses import dataclass

import polars


@dataclass(frozen=True)
class Dropped:
    """Rows of a source that are not in its trace, and why. `first_row`: the first of them, counted from 1."""

    reason: str
    rows: int
    first_row: int


@dataclass(frozen=True)
class Trace:
    """Servers with their starts, ends and sizes.

    `origin`: "synthetic", or the format's name. `servers` is sorted by start_seconds; its columns:
    start_seconds Int64, end_seconds Int64 (null: it still runs at the end), vcpus Float32, memory_mib Int64,
    load_percent Float32 (mean of its vCPUs; null: unknown), untouched_percent Float32 (null: unknown), group Utf8
    (customer or project; null: unknown).
    """

    name: str
    origin: str
    servers: polars.DataFrame
    end_of_trace_seconds: int
    dropped: tuple[Dropped, ...]
