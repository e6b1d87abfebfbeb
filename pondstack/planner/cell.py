"""One cell of the sweep: a seed, a policy, a topology, a pool size, a share of DRAM that is pooled."""

from dataclasses import dataclass

import numpy as np

from pondstack.planner import dram, variants
from pondstack.planner.blast_radius import blast_radius
from pondstack.planner.cluster import Outcome
from pondstack.planner.history import Array, History
from pondstack.planner.latency import latency_percent
from pondstack.planner.settings import Settings
from pondstack.planner.sizing import Sizes, sizes_of, truly_insensitive_percent


@dataclass(frozen=True)
class Task:
    """What to reckon. `share`: of DRAM that is pooled, times what the policy places there. `variant`: of variants."""

    seed: int
    policy: str
    topology: str
    pool_sockets: int
    share: float
    variant: str = variants.AS_IT_IS


@dataclass(frozen=True)
class Base:
    """What all cells of a seed share: its history, how many may be rejected, the least DRAM without a pool."""

    history: History
    limit: int
    mib_per_socket: float


@dataclass(frozen=True)
class Cell:
    """The least DRAM with such pools, and what else the replay on it shows. Speeds in GiB/s.

    `pooled_percent`: servers with pool memory, by time; `restarts`: of servers that a failure ended, and
    `not_restarted_percent` of these found no host.
    """

    mib_per_socket: float
    local_mib: float
    pool_mib: float
    pool_share_percent: float
    fallback_percent: float
    rejected_percent: float
    touching_percent: float
    exceeding_percent: float
    speed_p99_99: float
    speed_p99_999: float
    buffer_slices: float
    servers_per_host: float
    servers_per_pool: float
    pooled_percent: float
    restarts: float
    not_restarted_percent: float


def base_of(history: History, settings: Settings) -> Base:
    """Return the base of a seed."""
    limit = dram.limit_of(history, settings)
    return Base(history, limit, dram.baseline(history, settings, limit).mib_per_socket)


def cell_of(base: Base, task: Task, settings: Settings) -> Cell:
    """Reckon one cell."""
    history, settings = base.history, variants.settings_of(task.variant, settings)
    latency = latency_percent(task.topology, task.pool_sockets, settings)
    sizes = sizes_of(task.policy, history, settings, latency)
    sizes = variants.sizes_of(task.variant, history, sizes, settings.slice_mib)
    share = task.share * dram.placed_share(history, sizes.pool_mib)
    found = dram.pooled(history, sizes.pool_mib, task.pool_sockets, share, settings, base.limit, base.mib_per_socket)
    outcome, counted = found.outcome, history.counted
    radius, restarted = blast_radius(history, outcome, found.cluster), outcome.restarts > 0
    placed = counted & ~outcome.rejected
    touching, exceeding = _slowed(history, sizes, outcome, placed, settings, latency)
    speeds = np.percentile(outcome.speed[placed], [99.99, 99.999]) if placed.any() else (0.0, 0.0)
    return Cell(
        mib_per_socket=found.mib_per_socket,
        local_mib=float(found.cluster.local_mib),
        pool_mib=float(sum(found.cluster.slices) * settings.slice_mib),
        pool_share_percent=100 * dram.effective_share(history, outcome, settings.slice_mib),
        fallback_percent=_percent(placed & (sizes.pool_mib > 0) & (outcome.slices == 0), placed),
        rejected_percent=_percent(counted & outcome.rejected, counted),
        touching_percent=touching,
        exceeding_percent=exceeding,
        speed_p99_99=float(speeds[0]),
        speed_p99_999=float(speeds[1]),
        buffer_slices=float(outcome.buffer_slices),
        servers_per_host=radius.servers_per_host,
        servers_per_pool=radius.servers_per_pool,
        pooled_percent=radius.pooled_percent,
        restarts=float(outcome.restarts.sum()),
        not_restarted_percent=100.0 * float((restarted & outcome.rejected).sum()) / max(1, int(outcome.restarts.sum())),
    )


def _percent(some: Array, of_all: Array) -> float:
    return 100.0 * float(some.sum()) / max(1.0, float(of_all.sum()))


def _slowed(
    history: History, sizes: Sizes, outcome: Outcome, placed: Array, settings: Settings, latency: float
) -> tuple[float, float]:
    """Return the servers that touch pool memory without being meant to, and those that exceed the PDM, in percent.

    exceeding_percent of those that touch it exceed the PDM (Pond, section 6.5), and all that were wrongly taken for
    insensitive; QoS corrects mitigated_percent of all servers (section 6.4.3).
    """
    insensitive = history.insensitivity < truly_insensitive_percent(settings, latency) / 100
    pooled = placed & (outcome.slices > 0)
    wrong = pooled & sizes.labelled & ~insensitive
    beyond = outcome.slices * settings.slice_mib > history.untouched * history.memory_mib
    touching = _percent(pooled & ~sizes.labelled & beyond, placed)
    exceeding = _percent(wrong, placed) + touching * settings.exceeding_percent / 100
    return touching, max(0.0, exceeding - settings.mitigated_percent)
