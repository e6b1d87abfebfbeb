"""The free slices of a pool, taken in the order in which they were released. Compiled."""

from pondstack.planner.replay.compiled import jit
from pondstack.planner.replay.state import NEVER, Pools


@jit
def refresh(pools: Pools, pool: int, now: int) -> None:
    """Count the slices that have gone offline at their last host by now."""
    total, first, head = pools.total[pool], pools.first[pool], pools.head[pool]
    while pools.ready[pool] < pools.free[pool]:
        place = first + (head + pools.ready[pool]) % total
        if pools.ready_at[place] > now:
            return
        pools.ready[pool] += 1


@jit
def take(pools: Pools, pool: int, slices: int, now: int, slice_mib: int) -> float:
    """Take ready slices, and return how fast memory had to go offline for that, in MiB/s.

    That is what is taken, over the time since the youngest of it was released, at least 1 s; 0 if none was used before.
    """
    total, first = pools.total[pool], pools.first[pool]
    youngest = pools.released[first + (pools.head[pool] + slices - 1) % total]
    pools.head[pool] = (pools.head[pool] + slices) % total
    pools.free[pool] -= slices
    pools.ready[pool] -= slices
    if youngest == NEVER:
        return 0.0
    return slices * slice_mib / max(1.0, float(now - youngest))


@jit
def give(pools: Pools, pool: int, slices: int, now: int, offline_seconds: float) -> None:
    """Give slices back; their host takes them offline one after the other."""
    total, first = pools.total[pool], pools.first[pool]
    for number in range(slices):
        place = first + (pools.head[pool] + pools.free[pool]) % total
        pools.released[place] = now
        pools.ready_at[place] = now + (number + 1) * offline_seconds
        pools.free[pool] += 1
