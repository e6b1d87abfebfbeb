"""Who gets which buffers, and who gives which back (Zombieland, EuroSys'18, section 4.4). Pure.

The controller, the simulation and the planner call the same functions.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from pondstack.domain.errors import BufferShortage
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.states import OWNED, SliceState

_PREFERRED = (LenderKind.ZOMBIE, LenderKind.ACTIVE)


def usable(free: Iterable[Buffer], borrower: str, down: Collection[str] = ()) -> list[Buffer]:
    """Return the buffers that a borrower may have: free ones of other hosts which live and want none of it back.

    What Nova might still place guests on is not admitted, and nobody's.

    Of a zombie only what was promised to it: there is no key of anything else.
    """
    return [
        item
        for item in free
        if item.state is SliceState.FREE
        and item.lender != borrower
        and item.lender not in down
        and item.admitted
        and not item.leaving
        and (item.promised_to == borrower or (item.promised_to is None and item.kind is LenderKind.ACTIVE))
    ]


def choose(free: Sequence[Buffer], count: int, *, guaranteed: bool) -> tuple[Buffer, ...]:
    """Return `count` of the free buffers: zombies' before those of active hosts, spread evenly over lenders.

    Spread, so that the failure of one lender harms a part only. Of a request that is not `guaranteed` as many as there
    are. Raises BufferShortage, ValueError.
    """
    if count < 1:
        raise ValueError(f"no such request: {count} buffers")
    if guaranteed and len(free) < count:
        raise BufferShortage(
            f"{count} buffers are wanted and {len(free)} are free; have hosts lend more, or wait for a release"
        )
    taken: list[Buffer] = []
    for kind in _PREFERRED:
        taken += _spread([item for item in free if item.kind is kind], count - len(taken))
    return tuple(taken)


def to_reclaim(buffers: Iterable[Buffer], count: int, unguaranteed: Collection[str]) -> tuple[Buffer, ...]:
    """Return `count` buffers of one lender that go back to it (GS_reclaim): those first that harm least.

    What an earlier reclaim wanted and did not take; unallocated ones, first those that are not admitted; then those of
    allocations that promise nothing (`unguaranteed`, by uuid); then the rest, of as few allocations as possible. All of
    them when `count` is more.
    """
    candidates = list(buffers)
    sizes = Counter(item.allocation_uuid for item in candidates)

    def harm(item: Buffer) -> tuple[int, int, str, int]:
        if item.leaving:
            return (-1, 0, "", item.index)
        if item.state not in OWNED:
            return (0, item.admitted + (item.state is not SliceState.FREE), "", item.index)
        owner = item.allocation_uuid or ""
        return (1 if owner in unguaranteed else 2, -sizes[owner], owner, item.index)

    return tuple(sorted(candidates, key=harm)[: max(count, 0)])


def promise(buffers: Sequence[Buffer], borrowers: Sequence[str]) -> dict[int, str]:
    """Return by index to which host each free buffer of a lender is promised before it sleeps: turn about.

    A sleeping lender makes no keys, so that each buffer has its one borrower beforehand.
    """
    others = sorted({host for host in borrowers if all(item.lender != host for item in buffers)})
    free = sorted(
        item.index for item in buffers if item.state is SliceState.FREE and item.admitted and not item.leaving
    )
    return {index: others[place % len(others)] for place, index in enumerate(free)} if others else {}


def _spread(free: Iterable[Buffer], count: int) -> list[Buffer]:
    """Return up to `count` buffers, each time one of the lender that has the most left."""
    left: dict[str, list[Buffer]] = defaultdict(list)
    for item in sorted(free, key=lambda item: -item.index):
        left[item.lender].append(item)
    taken: list[Buffer] = []
    while left and len(taken) < count:
        lender = min(left, key=lambda name: (-len(left[name]), name))
        taken.append(left[lender].pop())
        if not left[lender]:
            del left[lender]
    return taken
