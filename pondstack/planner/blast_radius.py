"""How many servers the failure of one host or one pool device ends, by what a replay put on them.

A host's failure ends its servers, a pool's those that have memory there (Pond, section 4.2).
"""

from dataclasses import dataclass

import numpy as np

from pondstack.planner.cluster import Cluster, Outcome
from pondstack.planner.history import History

PER_SERVER_YEARS = 1000


@dataclass(frozen=True)
class BlastRadius:
    """Means over the time that counts. `pooled_percent`: of the servers' time, of those with pool memory."""

    servers_per_host: float
    servers_per_pool: float
    pooled_percent: float


def blast_radius(history: History, outcome: Outcome, cluster: Cluster) -> BlastRadius:
    """Return it of one replay."""
    window = max(1, history.last - history.counted_from)
    there = np.minimum(history.end, history.last) - np.maximum(history.start, history.counted_from)
    there = np.maximum(0, there) * ~outcome.rejected
    of_all, pooled = float(there.sum()), float((there * (outcome.slices > 0)).sum())
    return BlastRadius(
        servers_per_host=of_all / window / cluster.sockets,
        servers_per_pool=pooled / window / max(1, len(cluster.slices)),
        pooled_percent=100 * pooled / max(1.0, of_all),
    )


def interruptions(host_failures_per_year: float, pool_failures_per_year: float, pooled_percent: float) -> float:
    """Return how often failures end servers, per PER_SERVER_YEARS years of a server."""
    return PER_SERVER_YEARS * (host_failures_per_year + pool_failures_per_year * pooled_percent / 100)
