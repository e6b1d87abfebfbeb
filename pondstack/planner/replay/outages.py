"""When hosts and pool devices fail and are repaired in a history: drawn by its seed, the same for all that is compared.

A device that works fails at a constant rate; one that has failed is out of use for the time of a repair. The hosts'
failures are the same with pools and without. Sources: Pond, section 4.2 (what a failure reaches); rates are settings.
"""

import numpy as np

from pondstack.planner.replay.state import Outages
from pondstack.planner.settings import Settings

YEAR_SECONDS = 365.25 * 86_400
HOSTS, POOLS = 1, 2
"""Which draws a seed is for, besides the history's own."""

Edge = tuple[int, int, int, bool]


def outages_of(seed: int, span: tuple[int, int], sockets: int, pools: int, settings: Settings) -> Outages:
    """Return the outages of a cluster within a span of seconds."""
    of_hosts = _edges((seed, HOSTS), span, sockets, settings.host_failures_per_year, settings.repair_hours)
    of_pools = _edges((seed, POOLS), span, pools, settings.pool_failures_per_year, settings.repair_hours)
    edges: list[Edge] = [(at, number, -1, fails) for at, number, fails in of_hosts]
    edges += [(at, -1, number, fails) for at, number, fails in of_pools]
    edges.sort()
    return Outages(
        at=np.array([edge[0] for edge in edges], np.int64),
        socket=np.array([edge[1] for edge in edges], np.int32),
        pool=np.array([edge[2] for edge in edges], np.int32),
        fails=np.array([edge[3] for edge in edges], np.bool_),
    )


def _edges(
    seed: tuple[int, int], span: tuple[int, int], count: int, per_year: float, repair_hours: float
) -> list[tuple[int, int, bool]]:
    if not per_year:
        return []
    draw, found = np.random.default_rng(seed), []
    repair = max(1, round(repair_hours * 3600))
    for number in range(count):
        at = span[0] + 1 + int(draw.exponential(YEAR_SECONDS / per_year))
        while at < span[1]:
            found += [(at, number, True), (at + repair, number, False)]
            at += repair + 1 + int(draw.exponential(YEAR_SECONDS / per_year))
    return found
