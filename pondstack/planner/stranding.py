"""Memory that cannot be sold since no vCPU is left beside it, by what is sold of the vCPUs (Pond, Fig. 2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pondstack.planner.cluster import Cluster, replay
from pondstack.planner.figures import Stranding
from pondstack.planner.history import History
from pondstack.planner.settings import Settings

HOUR = 3600
UTILISATIONS = (60.0, 70.0, 80.0, 90.0, 100.0)
"""The peak takes so much of the vCPUs in one replay each, so that moments of all utilisations are seen."""
BUCKET = 5.0
LOWEST = 50.0


@dataclass(frozen=True)
class Seen:
    """Percent of the vCPUs that are sold and of the DRAM that is stranded, moment by moment."""

    sold: tuple[float, ...]
    stranded: tuple[float, ...]


def seen(history: History, settings: Settings, mib_per_socket: float) -> Seen:
    """Look at a cluster without pools at every hour, with so much DRAM per socket and ever fewer sockets."""
    hours = np.arange(history.counted_from, history.last, HOUR)
    none = np.zeros(len(history.start), np.int32)
    sold: list[float] = []
    stranded: list[float] = []
    for percent in UTILISATIONS:
        sockets = max(1, round(history.sockets * settings.core_utilisation_percent / percent))
        cluster = Cluster(sockets, settings.vcpus_per_socket, int(mib_per_socket))
        outcome = replay(history, none, cluster, settings, hours)
        sold += outcome.sold_percent.tolist()
        stranded += outcome.stranded_percent.tolist()
    return Seen(tuple(sold), tuple(stranded))


def stranding(found: Sequence[Seen]) -> tuple[Stranding, ...]:
    """Return the distribution of all seeds' moments by 5 % of sold vCPUs, from 50 % on; empty ranges are left out."""
    sold = np.array([value for item in found for value in item.sold])
    stranded = np.array([value for item in found for value in item.stranded])
    answers = []
    for low in np.arange(LOWEST, 100.0, BUCKET):
        inside = stranded[(sold >= low) & (sold < (low + BUCKET if low + BUCKET < 100 else 100.1))]
        if len(inside):
            p5, median, p95 = (float(value) for value in np.percentile(inside, [5, 50, 95]))
            answers.append(Stranding(float(low), float(low + BUCKET), len(inside), median, p5, p95))
    return tuple(answers)
