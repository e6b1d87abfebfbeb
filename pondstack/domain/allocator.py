"""Which free slices a VM gets. Pure: the controller, the simulator and the planner call the same function.

One extent is one CPU-less node of the guest, so the fewest extents win; among single extents the tightest run does, so
that long runs stay whole.
"""

from collections.abc import Iterable, Sequence

from pondstack.domain.errors import PoolFragmented, PoolShortage
from pondstack.domain.model import Extent, extents_of


def choose_extents(free: Iterable[int], count: int, shape: Sequence[int] | None = None) -> tuple[Extent, ...]:
    """Return extents of `count` slices taken from the `free` slice indexes.

    `shape` fixes the slices per extent, in the order of the answer (a live migration's destination must show the guest
    the same nodes). Raises PoolShortage (too few free), PoolFragmented (enough, but not in that shape), ValueError.
    """
    if count < 1 or (shape is not None and (sum(shape) != count or min(shape) < 1)):
        raise ValueError(f"no such request: {count} slices in the shape {shape}")
    runs = list(extents_of(free))
    available = sum(run.count for run in runs)
    if available < count:
        raise PoolShortage(f"{count} slices are wanted and {available} are free; release some or use another pool")
    return _fewest(runs, count) if shape is None else _shaped(runs, shape)


def largest_extent(free: Iterable[int]) -> int:
    """Return the length in slices of the longest run of `free`, 0 when there is none."""
    return max((run.count for run in extents_of(free)), default=0)


def _fewest(runs: list[Extent], count: int) -> tuple[Extent, ...]:
    taken: list[Extent] = []
    while count:
        fitting = [run for run in runs if run.count >= count]
        run = min(fitting, key=_tightness) if fitting else max(runs, key=lambda item: (item.count, -item.start))
        runs.remove(run)
        size = min(run.count, count)
        taken.append(Extent(run.start, size))
        count -= size
    return tuple(taken)


def _tightness(run: Extent) -> tuple[int, int]:
    return run.count, run.start


def _shaped(runs: list[Extent], shape: Sequence[int]) -> tuple[Extent, ...]:
    """Place the longest piece first, in the tightest run, and go back when a later piece finds no place."""
    order = sorted(range(len(shape)), key=lambda position: -shape[position])
    placed: dict[int, Extent] = {}
    dead_ends: set[tuple[int, tuple[int, ...]]] = set()

    def place(step: int, left: tuple[Extent, ...]) -> bool:
        if step == len(order):
            return True
        key = step, tuple(sorted(run.count for run in left))
        if key in dead_ends:
            return False
        size = shape[order[step]]
        tried: set[int] = set()
        for run in sorted((run for run in left if run.count >= size), key=_tightness):
            if run.count in tried:
                continue
            tried.add(run.count)
            placed[order[step]] = Extent(run.start, size)
            rest = (Extent(run.start + size, run.count - size),) if run.count > size else ()
            if place(step + 1, tuple(item for item in left if item is not run) + rest):
                return True
        dead_ends.add(key)
        return False

    if not place(0, tuple(runs)):
        lengths = sorted((run.count for run in runs), reverse=True)
        raise PoolFragmented(
            f"the shape {list(shape)} does not fit the free runs of {lengths} slices; use another pool or host"
        )
    return tuple(placed[position] for position in range(len(shape)))
