"""A cluster of sockets and pools, and what a history does to it."""

from dataclasses import dataclass

import numpy as np

from pondstack.domain.free_buffer import UNSIZED, Bounds, FreeBuffer, bounded
from pondstack.planner.history import Array, History
from pondstack.planner.replay import kernel
from pondstack.planner.replay.outages import outages_of
from pondstack.planner.replay.state import NEVER, REJECTED, Moments, Pools, Rules, Servers, Sockets, no_result
from pondstack.planner.settings import Settings

PLENTY_MIB = 2**30
"""Local memory of a socket that never runs out of it."""


@dataclass(frozen=True)
class Cluster:
    """Hardware: `local_mib` of each socket, `pool_slices` of each pool of `pool_sockets` (0: no pools).

    The last pool has fewer sockets where their number is no multiple, and as much less memory.
    `buffer`: what production would keep free of a pool, before its bounds.
    """

    sockets: int
    vcpus: int
    local_mib: int
    pool_sockets: int = 0
    pool_slices: int = 0
    buffer: FreeBuffer = UNSIZED

    @property
    def slices(self) -> list[int]:
        """Return the slices of each pool."""
        if not self.pool_sockets:
            return []
        full, rest = divmod(self.sockets, self.pool_sockets)
        return [self.pool_slices] * full + ([self.pool_slices * rest // self.pool_sockets] if rest else [])


@dataclass(frozen=True)
class Outcome:
    """By server: its socket (REJECTED: none), its slices, and the offlining speed that its start needs, in GiB/s.

    `restarts`: failures that ended it; where it is then is `socket`.

    `sold_percent`, `stranded_percent`: at each moment that was asked for, of the vCPUs and of the DRAM.
    """

    socket: Array
    slices: Array
    speed: Array
    restarts: Array
    sold_percent: Array
    stranded_percent: Array
    buffer_slices: int

    @property
    def rejected(self) -> Array:
        """Say who was rejected."""
        return self.socket == REJECTED


def replay(
    history: History, pool_mib: Array, cluster: Cluster, settings: Settings, moments: Array | None = None
) -> Outcome:
    """Replay a history on a cluster; `moments` (seconds) are when to look at what is sold and stranded."""
    totals = cluster.slices
    bounds = Bounds(settings.buffer_least_slices, settings.buffer_most_percent)
    buffers = [bounded(cluster.buffer, bounds, total).slices for total in totals]
    result = no_result(len(history.start))
    at = np.zeros(0, np.int64) if moments is None else moments.astype(np.int64)
    seen = Moments(at, np.zeros(len(at), np.int64), np.zeros(len(at), np.int64))
    kernel.run(
        servers_of(history, pool_mib),
        _sockets(cluster),
        _pools(totals, buffers),
        _rules(settings),
        result,
        seen,
        outages_of(history.seed, (history.counted_from, history.last), cluster.sockets, len(totals), settings),
        int(history.cpu.min()),
    )
    return Outcome(
        socket=result.socket,
        slices=result.slices,
        speed=result.speed / 1024,
        restarts=result.restarts,
        sold_percent=100 * seen.sold_cpu / (1000 * cluster.vcpus * cluster.sockets),
        stranded_percent=100 * seen.stranded_mib / (cluster.local_mib * cluster.sockets),
        buffer_slices=max(buffers, default=0),
    )


def servers_of(history: History, pool_mib: Array) -> Servers:
    """Return the arrays of the compiled replay."""
    by_end = np.argsort(history.end, kind="stable").astype(np.int32)
    return Servers(history.start, history.end, by_end, history.cpu, history.memory_mib, pool_mib)


def _sockets(cluster: Cluster) -> Sockets:
    count = cluster.sockets
    cpu = np.full(count, 1000 * cluster.vcpus, np.int32)
    pool = np.arange(count, dtype=np.int32) // cluster.pool_sockets if cluster.pool_sockets else np.full(count, -1)
    local = np.full(count, cluster.local_mib, np.int32)
    return Sockets(cpu, cpu.copy(), local, np.zeros(count, np.int32), pool.astype(np.int32), np.zeros(count, np.bool_))


def _pools(totals: list[int], buffers: list[int]) -> Pools:
    total = np.array(totals, np.int32)
    first = np.concatenate([[0], np.cumsum(total, dtype=np.int64)]).astype(np.int64)
    size = int(first[-1])
    return Pools(
        total=total,
        buffer=np.array(buffers, np.int32),
        first=first,
        head=np.zeros(len(total), np.int32),
        free=total.copy(),
        ready=total.copy(),
        released=np.full(size, NEVER, np.int64),
        ready_at=np.zeros(size),
        out=np.zeros(len(total), np.bool_),
    )


def _rules(settings: Settings) -> Rules:
    return Rules(
        cpu_weight=float(settings.cpu_weight_multiplier),
        ram_weight=float(settings.ram_weight_multiplier),
        pool_weight=float(settings.pool_weight_multiplier),
        slice_mib=int(settings.slice_mib),
        offline_seconds=settings.offline_ms_per_gib / 1000 * settings.slice_mib / 1024,
        falls_back=True,
    )
