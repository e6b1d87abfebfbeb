"""Step 4 of OpenStack Neat: the host that a server moves to. Algorithms by name. Pure.

Beloglazov and Buyya, CCPE 2012, section 5.4: best fit decreasing; here by what is scarcest on a host, since memory
often is. What may be claimed of a host is Placement's word.
"""

from collections.abc import Callable, Container, Mapping
from itertools import islice

from pondstack.consolidation.decision.demand import Demand
from pondstack.consolidation.decision.rooms import Rooms

LOOKED_AT = 16
"""Hosts on which a server fits, the tightest first, among which the lifetimes choose."""
BUCKETS = (3600.0, 6 * 3600.0, 24 * 3600.0, 7 * 24 * 3600.0)
"""Lifetimes that end in the same one are alike."""


Choose = Callable[[Demand, Rooms, Container[str] | None], str | None]
"""Returns the host that takes a server, of those that are allowed (None: all); None: it fits on none."""


def _tightest(demand: Demand, rooms: Rooms, allowed: Container[str] | None) -> str | None:
    """Best fit: the host with the least left of what is scarcest there."""
    return next(rooms.fitting(demand, allowed), None)


def _roomiest(demand: Demand, rooms: Rooms, allowed: Container[str] | None) -> str | None:
    """Worst fit: the host with the most left, so that none comes near its threshold."""
    return next(rooms.fitting(demand, allowed, tightest=False), None)


def _lifetime(demand: Demand, rooms: Rooms, allowed: Container[str] | None) -> str | None:
    """Take the host whose last server ends no earlier, else the one that is kept awake the least longer (LAVA)."""
    rest = demand.server.remaining_seconds
    some = list(islice(rooms.fitting(demand, allowed), LOOKED_AT))
    if rest is None or not some:
        return some[0] if some else None
    return min(some, key=lambda name: _bucket(max(0.0, rest - rooms[name].exit_seconds)))


def _bucket(seconds: float) -> int:
    return 0 if seconds <= 0 else 1 + sum(seconds > bound for bound in BUCKETS)


ALGORITHMS: Mapping[str, Choose] = {"best-fit": _tightest, "worst-fit": _roomiest, "lifetime": _lifetime}
