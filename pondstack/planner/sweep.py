"""Runs the cells of a sweep in processes of joblib, and keeps each result, so that an interrupted run goes on.

joblib.parallel_config(backend="dask" or "ray") around it takes the same cells to a cluster.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace

ENGINE = 2
"""Grows whenever the same inputs give other results: what was kept before is not used then."""

ELSEWHERE = frozenset(
    {
        *("seeds", "pool_sockets", "policies", "topologies", "pool_shares", "confidence_percent", "resamples"),
        *("overcommit_ratios", "dram_price_per_gib", "ssd_price_per_gib", "emc_price", "switch_price", "cable_price"),
        *("emc_watts", "switch_watts", "dram_watts_per_gib", "energy_price_per_kwh", "lifetime_years"),
    }
)
"""Settings that say which parts there are, or what is made of their results: a wider sweep uses what is kept."""

Record = dict[str, Any]
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
    parts: Sequence[tuple[str, Callable[..., Record], tuple[Any, ...]]],
    results: Results,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Record]:
    """Return the record of each part (key, function, arguments) by its key; kept ones are not reckoned again."""
    found = {key: kept for key, _, _ in parts if (kept := results.get(key)) is not None}
    missing = [part for part in parts if part[0] not in found]
    _tell(progress, len(found))
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for key, record in pool(delayed(_run)(*part) for part in missing):
        found[key] = record
        results.put(key, record)
        _tell(progress, len(found))
    return found


def _run(key: str, function: Callable[..., Record], arguments: tuple[Any, ...]) -> tuple[str, Record]:
    return key, function(*arguments)


def _tell(progress: Callable[[int], None] | None, done: int) -> None:
    if progress is not None:
        progress(done)
