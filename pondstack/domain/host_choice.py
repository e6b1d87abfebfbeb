"""Which host and pool a server goes to: what filter and weighers reckon, as plain functions of plain numbers. Pure.

The planner compiles these very functions, so they take and return numbers only and call nothing of ours.
"""

COMFORT_BUFFERS = 2
"""A pool is comfortable while it keeps this many buffers free after the server started."""

TIE_BREAK = 0.01
"""Weight of a host without a pool for a server without pool memory: it only tells equal hosts apart."""


def slices_needed(need_mib: int, slice_mib: int) -> int:
    """Return the whole slices that hold `need_mib` MiB."""
    return -(-need_mib // slice_mib)


def kept_back(buffer_slices: int, returning_slices: int) -> int:
    """Return the slices that Placement does not offer: memory on its way back fills the free buffer again."""
    return max(buffer_slices, returning_slices)


def comfort(left_slices: int, buffer_slices: int) -> float:
    """Return how comfortable a pool is that has so many free slices left, from 0 (none) to 1 (buffers kept)."""
    wanted = max(1, COMFORT_BUFFERS * max(1, buffer_slices))
    return min(1.0, max(0, left_slices) / wanted)


def pool_weight(need_mib: int, reaches_pool: bool, most_comfort: float) -> float:
    """Return PondWeigher's weight of a host; `most_comfort`: of its fitting pools, 0 where none fits."""
    if need_mib == 0:
        return 0.0 if reaches_pool else TIE_BREAK
    return most_comfort


def local_ram_mib(free_ram_mib: int, pool_mib: int) -> int:
    """Return LocalRAMWeigher's weight of a host: Nova's free RAM has the pool memory of its guests off."""
    return max(0, free_ram_mib + pool_mib)
