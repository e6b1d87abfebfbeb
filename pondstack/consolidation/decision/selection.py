"""Step 3 of OpenStack Neat: which servers leave an overloaded host, in which order. Algorithms by name. Pure.

Beloglazov and Buyya, CCPE 2012, section 5.3: as few as bring the host below its threshold.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence

from pondstack.consolidation.decision.demand import Demand

Order = Callable[[Sequence[Demand]], list[Demand]]
"""Returns the demands of a host's servers, who is to leave first first."""


def _least_memory(demands: Sequence[Demand]) -> list[Demand]:
    """Minimum migration time: the least memory to copy, of equal ones the greatest load (Neat's MMTMC)."""
    return sorted(demands, key=lambda item: (item.server.local_mib, -item.cpus, item.server.uuid))


def _least_load(demands: Sequence[Demand]) -> list[Demand]:
    """Minimum utilisation: the least CPU first."""
    return sorted(demands, key=lambda item: (item.cpus, item.server.uuid))


def _random(demands: Sequence[Demand]) -> list[Demand]:
    """Random choice, the same for the same servers: a plan can be made again."""
    ordered = sorted(demands, key=lambda item: item.server.uuid)
    seed = ordered[0].server.uuid if ordered else ""
    random.Random(seed).shuffle(ordered)
    return ordered


def _longest_lifetime(demands: Sequence[Demand]) -> list[Demand]:
    """The longest predicted remaining lifetime first: who ends soon frees the host without a migration (LAVA)."""
    return sorted(demands, key=lambda item: (-_remaining(item), item.server.local_mib, item.server.uuid))


def _remaining(demand: Demand) -> float:
    seconds = demand.server.remaining_seconds
    return math.inf if seconds is None else seconds


ALGORITHMS: Mapping[str, Order] = {
    "least-memory": _least_memory,
    "least-load": _least_load,
    "random": _random,
    "longest-lifetime": _longest_lifetime,
}
