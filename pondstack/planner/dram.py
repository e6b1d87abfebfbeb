"""The least DRAM that is enough: searched by replays, without a pool and with pools of one size.

Both are judged alike: as many servers are rejected as with plenty of DRAM, and rejected_percent of all more at the
most. The baseline is the least uniform DRAM per socket for that; the most that any socket uses with plenty of it would
be more, and would make any pool look better than it is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pondstack.domain.free_buffer import Churn, FreeBuffer, Taken, needed
from pondstack.planner.cluster import PLENTY_MIB, Cluster, Outcome, replay
from pondstack.planner.history import Array, History, peak
from pondstack.planner.settings import Settings

MOST_POOLED = 0.9
"""The most of all DRAM that is put into pools."""


@dataclass(frozen=True)
class Found:
    """A cluster that is enough, its DRAM in MiB per socket, and what the history did to it."""

    cluster: Cluster
    mib_per_socket: float
    outcome: Outcome


def limit_of(history: History, settings: Settings) -> int:
    """Return how many of the servers that count may be rejected."""
    plenty = Cluster(history.sockets, settings.vcpus_per_socket, PLENTY_MIB)
    by_cpu = _rejected(replay(history, _none(history), plenty, settings), history)
    return by_cpu + int(settings.rejected_percent / 100 * int(history.counted.sum()))


def baseline(history: History, settings: Settings, limit: int) -> Found:
    """Return the least uniform DRAM per socket."""

    def build(mib: int) -> Cluster:
        return Cluster(history.sockets, settings.vcpus_per_socket, mib)

    return _least(history, _none(history), build, settings, limit, _mean_demand(history))


def pooled(
    history: History, pool_mib: Array, pool_sockets: int, share: float, settings: Settings, limit: int, near_mib: float
) -> Found:
    """Return the least DRAM with pools that have `share` of it; `near_mib`: where to begin, per socket."""
    buffer = buffer_of(history, pool_mib, pool_sockets, settings)
    part = min(MOST_POOLED, share)

    def build(mib: int) -> Cluster:
        slices = round(part * mib * pool_sockets / settings.slice_mib)
        local = mib - slices * settings.slice_mib // pool_sockets
        return Cluster(history.sockets, settings.vcpus_per_socket, max(0, local), pool_sockets, slices, buffer)

    return _least(history, pool_mib, build, settings, limit, near_mib)


def mib_per_socket(cluster: Cluster, slice_mib: int) -> float:
    """Return all DRAM of a cluster per socket."""
    return cluster.local_mib + sum(cluster.slices) * slice_mib / cluster.sockets


def placed_share(history: History, pool_mib: Array) -> float:
    """Return what of the memory is meant for pools, by memory and time."""
    memory = history.memory_mib * seconds(history)
    return float((pool_mib * seconds(history)).sum() / max(1.0, memory.sum()))


def effective_share(history: History, outcome: Outcome, slice_mib: int) -> float:
    """Return what of the memory was really on pools, by memory and time, of the servers that were placed."""
    weight = seconds(history) * ~outcome.rejected
    return float((outcome.slices * slice_mib * weight).sum() / max(1.0, (history.memory_mib * weight).sum()))


def buffer_of(history: History, pool_mib: Array, pool_sockets: int, settings: Settings) -> FreeBuffer:
    """Return the free buffer that production would size from the churn of one pool that has plenty of memory."""
    slices = max(1, _most_at_once(history, pool_mib, settings))
    plenty = Cluster(history.sockets, settings.vcpus_per_socket, PLENTY_MIB, pool_sockets, slices)
    outcome = replay(history, pool_mib, plenty, settings)
    mine = (outcome.socket >= 0) & (outcome.socket < pool_sockets) & (outcome.slices > 0) & history.counted
    starts, taken = history.start[mine], outcome.slices[mine]
    offline = settings.offline_ms_per_gib / 1000 * settings.slice_mib / 1024
    back = [float(number + 1) * offline for count in taken.tolist() for number in range(count)]
    events = [Taken(float(at), int(count)) for at, count in zip(starts.tolist(), taken.tolist(), strict=True)]
    return needed(Churn(events, back))


def _least(
    history: History,
    pool_mib: Array,
    build: Callable[[int], Cluster],
    settings: Settings,
    limit: int,
    near_mib: float,
) -> Found:
    """Return the least that is enough, in steps of dram_step_mib, by bisection from `near_mib` on."""
    step = settings.dram_step_mib
    tried: dict[int, Found] = {}

    def enough(steps: int) -> bool:
        cluster = build(steps * step)
        outcome = replay(history, pool_mib, cluster, settings)
        tried[steps] = Found(cluster, mib_per_socket(cluster, settings.slice_mib), outcome)
        return _rejected(outcome, history) <= limit

    low, high, stride = 0, max(1, round(near_mib / step)), max(1, round(near_mib / step / 16))
    while not enough(high):
        low, high, stride = high, high + stride, 2 * stride
    while high - stride > low and enough(high - stride):
        high, stride = high - stride, 2 * stride
    low = max(low, high - stride)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return tried[high]


def _rejected(outcome: Outcome, history: History) -> int:
    return int((outcome.rejected & history.counted).sum())


def _none(history: History) -> Array:
    return np.zeros(len(history.start), np.int32)


def seconds(history: History) -> Array:
    """Return how long each server runs within the trace."""
    return np.maximum(0, np.minimum(history.end, history.last) - history.start).astype(np.float64)


def _mean_demand(history: History) -> float:
    whole = max(1, history.last - int(history.start[0]))
    return float((history.memory_mib * seconds(history)).sum() / whole / history.sockets)


def _most_at_once(history: History, pool_mib: Array, settings: Settings) -> int:
    """Return slices of one pool that never runs out, though as many again may be on their way back."""
    return 2 * int(peak(history.start, history.end, pool_mib)) // settings.slice_mib
