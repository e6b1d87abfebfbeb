"""What pools save and what they cost in performance, over all seeds."""

from collections.abc import Mapping

from pondstack.planner.answers.parts import GIB, Grid, key_of
from pondstack.planner.blast_radius import interruptions
from pondstack.planner.cell import Base, Cell, Task
from pondstack.planner.estimate import estimate
from pondstack.planner.figures import Dram, Estimate, Failures, Offlining, Slowdown
from pondstack.planner.latency import extra_ns, latency_percent
from pondstack.planner.settings import Settings
from pondstack.planner.sweep import Record
from pondstack.planner.variants import AS_IT_IS

Kind = tuple[str, str, int]
Found = tuple[tuple[Dram, ...], tuple[Slowdown, ...], tuple[Offlining, ...], tuple[Failures, ...]]


def answers(grid: Grid, cells: Mapping[str, Record], bases: Mapping[int, Base], settings: Settings) -> Found:
    """Return the answers for each policy, topology and pool size.

    The share of DRAM that is pooled is one for all seeds, the one that needs the least on average: hardware is bought
    before the servers come.
    """
    dram, slowdown, offlining, failures = [], [], [], []
    for kind in grid.kinds:
        best = chosen(kind, cells, settings)
        dram.append(_dram(kind, best, bases, settings))
        slowdown.append(_slowdown(kind, best, settings))
        offlining.append(_offlining(kind, best, settings))
        failures.append(_failures(kind, best, settings))
    return tuple(dram), tuple(slowdown), tuple(offlining), tuple(failures)


def chosen(kind: Kind, cells: Mapping[str, Record], settings: Settings, variant: str = AS_IT_IS) -> list[Cell]:
    """Return the cells of all seeds, in their order, of the share of DRAM that needs the least."""
    by_share = [
        [Cell(**cells[key_of(Task(seed, *kind, share, variant))]) for seed in settings.seeds]
        for share in settings.pool_shares
    ]
    return min(by_share, key=lambda found: sum(cell.mib_per_socket for cell in found))


def _over(cells: list[Cell], name: str, settings: Settings, scale: float = 1.0) -> Estimate:
    return estimate([getattr(cell, name) / scale for cell in cells], settings)


def _dram(kind: Kind, cells: list[Cell], bases: Mapping[int, Base], settings: Settings) -> Dram:
    policy, topology, size = kind
    without = [bases[seed].mib_per_socket for seed in settings.seeds]
    saved = [100 * (1 - cell.mib_per_socket / before) for cell, before in zip(cells, without, strict=True)]
    return Dram(
        policy=policy,
        topology=topology,
        pool_sockets=size,
        saved_percent=estimate(saved, settings),
        gib_per_socket=_over(cells, "mib_per_socket", settings, GIB),
        baseline_gib_per_socket=estimate([before / GIB for before in without], settings),
        local_gib_per_socket=_over(cells, "local_mib", settings, GIB),
        pool_gib=_over(cells, "pool_mib", settings, GIB),
        pool_share_percent=_over(cells, "pool_share_percent", settings),
        fallback_percent=_over(cells, "fallback_percent", settings),
        rejected_percent=_over(cells, "rejected_percent", settings),
        extra_latency_ns=extra_ns(topology, size, settings),
        latency_percent=latency_percent(topology, size, settings),
    )


def _slowdown(kind: Kind, cells: list[Cell], settings: Settings) -> Slowdown:
    exceeding, budget = _over(cells, "exceeding_percent", settings), 100 - settings.target_percent
    return Slowdown(
        policy=kind[0],
        topology=kind[1],
        pool_sockets=kind[2],
        touching_percent=_over(cells, "touching_percent", settings),
        exceeding_percent=exceeding,
        budget_percent=budget,
        within_budget=exceeding.mean <= budget,
    )


def _offlining(kind: Kind, cells: list[Cell], settings: Settings) -> Offlining:
    return Offlining(
        policy=kind[0],
        topology=kind[1],
        pool_sockets=kind[2],
        p99_99=_over(cells, "speed_p99_99", settings),
        p99_999=_over(cells, "speed_p99_999", settings),
        buffer_slices=_over(cells, "buffer_slices", settings),
    )


def _failures(kind: Kind, cells: list[Cell], settings: Settings) -> Failures:
    hosts, pools = settings.host_failures_per_year, settings.pool_failures_per_year
    return Failures(
        policy=kind[0],
        topology=kind[1],
        pool_sockets=kind[2],
        servers_per_host=_over(cells, "servers_per_host", settings),
        servers_per_pool=_over(cells, "servers_per_pool", settings),
        interruptions=estimate([interruptions(hosts, pools, cell.pooled_percent) for cell in cells], settings),
        without_pool=interruptions(hosts, pools, 0.0),
        restarts=_over(cells, "restarts", settings),
        not_restarted_percent=_over(cells, "not_restarted_percent", settings),
    )
