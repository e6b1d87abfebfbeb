"""A cluster's history for one seed: a part of the trace that fills the cluster, and what the trace does not tell.

Groups (customers or projects; a server without one is its own) are drawn with replacement, so that a seed is another
cluster of the same cloud, and the spread between seeds is that between clusters. Copies are shifted in time.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray

from pondstack.planner.replay.state import FOREVER
from pondstack.planner.settings import Settings
from pondstack.planner.trace import Trace

SHIFT_SECONDS = 3600
"""Copies of a group start up to that much earlier or later."""

BRIEF = 0.01
"""Of the time: a peak of vCPUs that is as brief as that is not what a cloud buys sockets for."""

Array = NDArray[Any]


@dataclass(frozen=True)
class History:
    """Columns by server, sorted by start; `cpu` in thousandths of a vCPU. Draws are uniform from 0 to 1.

    `counted_from`: servers that start before warm the cluster up. `insensitivity`: below the share of insensitive
    servers, it is one; `has_history`, `label`, `over`, `factor`: draws of the models' errors. `seed`: for what is drawn
    elsewhere.
    """

    start: Array
    end: Array
    cpu: Array
    memory_mib: Array
    load_percent: Array
    untouched: Array
    insensitivity: Array
    has_history: Array
    label: Array
    over: Array
    factor: Array
    sockets: int
    counted_from: int
    last: int
    seed: int = 0

    @property
    def counted(self) -> Array:
        """Say which servers count."""
        return self.start >= self.counted_from


def assumptions(trace: Trace, settings: Settings) -> tuple[str, ...]:
    """Return what is assumed since the trace does not tell it."""
    found, rows = [], trace.servers.height
    for column, text in (
        ("untouched_percent", f"drawn with a median of {settings.truly_untouched_percent:g} % (Pond, section 3.2)"),
        (
            "load_percent",
            f"drawn with a mean of {settings.load_percent:g} %, {settings.idle_servers_percent:g} % of servers idle",
        ),
    ):
        unknown = trace.servers[column].null_count()
        if unknown:
            found.append(f"{column} of {unknown} of {rows} servers is unknown: {text}")
    found.append("which servers are insensitive to latency is drawn: no trace tells it")
    return tuple(found)


class Sampler:
    """Draws the histories of all seeds from one trace. Raises ValueError for a trace without servers."""

    def __init__(self, trace: Trace, settings: Settings) -> None:
        if trace.servers.is_empty():
            raise ValueError(f"trace {trace.name} has no servers; nothing can be replayed")
        self._settings, self._last = settings, int(trace.end_of_trace_seconds)
        self._whole, self._codes = _columns(trace), _codes(trace.servers["group"])
        self._sold = settings.vcpus_per_socket * settings.core_utilisation_percent / 100
        self._expected = min(1.0, settings.sockets * self._sold / max(1e-9, self._busy(self._whole)))

    def _busy(self, columns: dict[str, Array]) -> float:
        first = int(columns["start"][0])
        counted = first + int((self._last - first) * self._settings.warmup_percent / 100)
        return busy(columns["start"], columns["end"], columns["cpu"], counted, self._last) / 1000

    def history(self, seed: int) -> History:
        """Return the history of one seed."""
        draw = np.random.default_rng(seed)
        return self._history(_drawn(self._whole, self._codes, self._expected, draw), draw, seed)

    def whole(self, seed: int = 0) -> History:
        """Return all of the trace, each server once, on as many sockets as that needs."""
        return self._history(self._whole, np.random.default_rng(seed), seed)

    def _history(self, some: dict[str, Array], draw: np.random.Generator, seed: int) -> History:
        settings = self._settings
        first, count = int(some["start"][0]), len(some["start"])
        found = History(
            start=some["start"],
            end=some["end"],
            cpu=some["cpu"],
            memory_mib=some["memory"],
            load_percent=100 * draw.beta(1, _beta(settings), count),
            untouched=_filled(some["untouched"] / 100, draw.random(count) ** _power(settings)),
            insensitivity=draw.random(count),
            has_history=draw.random(count),
            label=draw.random(count),
            over=draw.random(count),
            factor=draw.random(count),
            sockets=max(1, math.ceil(self._busy(some) / self._sold)),
            counted_from=first + int((self._last - first) * settings.warmup_percent / 100),
            last=self._last,
            seed=seed,
        )
        idle = draw.random(count) < settings.idle_servers_percent / 100  # drawn last: the other draws stay as they were
        drawn = np.where(idle, found.load_percent * settings.oasis_idle_percent / 100, found.load_percent)
        return replace(found, load_percent=_filled(some["load"], drawn))


def _beta(settings: Settings) -> float:
    """Return b of the Beta(1, b) from which busy servers are drawn, so that all have the assumed mean.

    Idle ones are such a draw of oasis_idle_percent.
    """
    idle = settings.idle_servers_percent / 100
    whole = 1 - idle + idle * settings.oasis_idle_percent / 100
    return max(1e-3, 100 * whole / max(0.1, settings.load_percent) - 1)


def _power(settings: Settings) -> float:
    """Return k so that the median of u^k is the assumed untouched share."""
    return math.log(min(0.99, max(0.01, settings.truly_untouched_percent / 100))) / math.log(0.5)


def _filled(known: Array, drawn: Array) -> Array:
    return np.where(np.isnan(known), drawn, known)


def _columns(trace: Trace) -> dict[str, Array]:
    servers = trace.servers
    start = servers["start_seconds"].to_numpy().astype(np.int64)
    end = servers["end_seconds"].fill_null(int(FOREVER)).to_numpy().astype(np.int64)
    return {
        "start": start,
        "end": np.maximum(end, start + 1),  # one that ends in the second of its start has been there
        "cpu": np.ceil(servers["vcpus"].to_numpy().astype(np.float64) * 1000).astype(np.int32),
        "memory": servers["memory_mib"].to_numpy().astype(np.int32),
        "load": servers["load_percent"].cast(polars.Float64).fill_null(float("nan")).to_numpy(),
        "untouched": servers["untouched_percent"].cast(polars.Float64).fill_null(float("nan")).to_numpy(),
    }


def _codes(groups: polars.Series) -> Array:
    """Return a number for each group; servers without one have one each."""
    codes = groups.rank("dense").cast(polars.Int64).to_numpy().astype(np.float64)
    alone = np.isnan(codes)
    codes[alone] = np.nanmax(codes, initial=0) + 1 + np.arange(alone.sum())
    return codes.astype(np.int64)


def _drawn(whole: dict[str, Array], codes: Array, expected: float, draw: np.random.Generator) -> dict[str, Array]:
    groups = int(codes.max()) + 1
    copies = draw.poisson(expected, groups)
    if not copies[codes].any():
        copies[codes[0]] = 1
    rows = np.repeat(np.arange(len(codes)), copies[codes])
    copy = np.arange(len(rows)) - np.repeat(np.cumsum(copies[codes]) - copies[codes], copies[codes])
    shifts = draw.integers(-SHIFT_SECONDS, SHIFT_SECONDS + 1, (groups, int(copies.max())))
    shifts[:, 0] = 0
    shift = shifts[codes[rows], copy]
    found = {name: values[rows] for name, values in whole.items()}
    start = np.maximum(found["start"] + shift, whole["start"][0])
    found["end"] = np.where(found["end"] >= FOREVER, FOREVER, start + found["end"] - found["start"])
    found["start"] = start
    order = np.argsort(start, kind="stable")
    return {name: values[order] for name, values in found.items()}


def busy(start: Array, end: Array, amounts: Array, first: int, last: int) -> float:
    """Return what is asked for at once for all but BRIEF of the time from `first` to `last`, by second."""
    amounts = amounts.astype(np.int64)
    times = np.concatenate([end, start])
    order = np.argsort(times, kind="stable")
    edges = np.clip(times[order], first, last)
    level = np.cumsum(np.concatenate([-amounts, amounts])[order])
    lasts = np.diff(np.append(edges, last))
    rank = np.argsort(level, kind="stable")
    place = np.searchsorted(np.cumsum(lasts[rank]), (1 - BRIEF) * lasts.sum())
    return float(level[rank[min(place, len(rank) - 1)]])


def peak(start: Array, end: Array, amounts: Array) -> float:
    """Return the most that is asked for at once; `amounts`: by server."""
    amounts = amounts.astype(np.int64)
    order = np.argsort(np.concatenate([end, start]), kind="stable")  # ends before starts of the same second
    return float(np.cumsum(np.concatenate([-amounts, amounts])[order]).max())
