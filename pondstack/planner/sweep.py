"""Runs the cells of a sweep in processes of joblib, and keeps each result, so that an interrupted run goes on.

Within backends.connected(address) a cluster of Dask or Ray runs the same cells.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from pondstack.domain.errors import Unavailable
from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace

ENGINE = 3
"""Grows whenever the same inputs give other results: what was kept before is not used then."""

ELSEWHERE = frozenset(
    {
        *("seeds", "pool_sockets", "policies", "topologies", "pool_shares", "confidence_percent", "resamples"),
        *("overcommit_ratios", "dram_price_per_gib", "ssd_price_per_gib", "emc_price", "switch_price", "cable_price"),
        *("emc_watts", "switch_watts", "dram_watts_per_gib", "energy_price_per_kwh", "lifetime_years"),
    }
)
"""Settings that say which parts there are, or what is made of their results: a wider sweep uses what is kept."""

BATCH = 8
"""Parts for each process, of backends that return nothing before all they were given is done.

The more, the less processes wait for the last part of a batch; the fewer, the less is lost by an interruption.
"""

Record = dict[str, Any]
Part = tuple[str, Callable[..., Record], tuple[Any, ...]]
Progress = Callable[[int, int], None]
"""Is told how many of how many parts are done."""


def digest_of(trace: Trace, settings: Settings) -> str:
    """Return what tells one trace, with the settings that parts depend on, from all others."""
    used = {name: value for name, value in asdict(settings).items() if name not in ELSEWHERE}
    found = hashlib.sha256(f"{ENGINE} {json.dumps(used, sort_keys=True)}".encode())
    found.update(str(trace.end_of_trace_seconds).encode())
    for column in trace.servers.columns:
        found.update(column.encode())
        found.update(trace.servers[column].hash(0).to_numpy().tobytes())
    return found.hexdigest()


class Results:
    """What cells gave, as files of a folder; None keeps nothing."""

    def __init__(self, folder: Path | None, digest: str) -> None:
        self._folder = None if folder is None else folder / digest[:32]
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Record | None:
        """Return what is kept under a key; None: nothing, or a file that was cut short."""
        if self._folder is None:
            return None
        try:
            found = json.loads((self._folder / f"{key}.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, record: Record) -> None:
        """Keep a result, all of it or nothing."""
        if self._folder is None:
            return
        path = self._folder / f"{key}.json"
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(record))
        draft.replace(path)


def sweep(
    parts: Sequence[Part],
    results: Results,
    *,
    jobs: int | None = 1,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Record]:
    """Return the record of each part (key, function, arguments) by its key; kept ones are not reckoned again.

    `jobs`: processes at once; None: what joblib is configured for, one unless it is a cluster.
    """
    found = {key: kept for key, _, _ in parts if (kept := results.get(key)) is not None}
    missing = [part for part in parts if part[0] not in found]
    _tell(progress, len(found))
    for key, record in _reckoned(missing, jobs):
        found[key] = record
        results.put(key, record)
        _tell(progress, len(found))
    return found


def check_engine(engine: int) -> None:
    """Raise Unavailable where this process would give other results than the one that asks: it may be of a cluster."""
    if engine != ENGINE:
        raise Unavailable(
            f"a worker has another release of pondstack (engine {ENGINE}, not {engine}): install the same"
        )


def _reckoned(parts: Sequence[Part], jobs: int | None) -> Iterator[tuple[str, Record]]:
    """Yield keys and records as they come; batch by batch where a backend, as Ray's, cannot return them so."""
    pool = _generator(jobs)
    return _in_batches(parts, jobs) if pool is None else pool(delayed(_run)(ENGINE, *part) for part in parts)


def _generator(jobs: int | None) -> Parallel | None:
    try:
        return Parallel(n_jobs=jobs, return_as="generator_unordered")
    except ValueError:
        return None


def _in_batches(parts: Sequence[Part], jobs: int | None) -> Iterator[tuple[str, Record]]:
    if not parts:
        return
    # One pool for all: processes of a cluster take seconds to start.
    with Parallel(n_jobs=jobs) as pool:
        size = BATCH * effective_n_jobs(jobs)
        for first in range(0, len(parts), size):
            yield from pool(delayed(_run)(ENGINE, *part) for part in parts[first : first + size])


def _run(engine: int, key: str, function: Callable[..., Record], arguments: tuple[Any, ...]) -> tuple[str, Record]:
    check_engine(engine)
    return key, function(*arguments)


def _tell(progress: Callable[[int], None] | None, done: int) -> None:
    if progress is not None:
        progress(done)
