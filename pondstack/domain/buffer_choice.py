"""Who gets which buffers, and who gives which back (Zombieland, EuroSys'18, section 4.4). Pure.

The controller, the simulation and the planner call the same functions.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pondstack.domain.errors import BufferShortage
from pondstack.domain.escrow import NOWHERE, Reach
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.states import OWNED, SliceState

_PREFERRED: tuple[Callable[[Buffer], bool], ...] = (
    lambda item: item.kind is LenderKind.ZOMBIE and item.promised_to is not None,
    lambda item: item.kind is LenderKind.ZOMBIE and item.promised_to is None,
    lambda item: item.kind is LenderKind.ACTIVE,
)


def usable(free: Iterable[Buffer], borrower: str, down: Collection[str] = (), reach: Reach = NOWHERE) -> list[Buffer]:
    """Return the buffers that a borrower may have: free ones of other hosts which live and want none of it back.

    What Nova might still place guests on is not admitted, and nobody's. Of a zombie what is within its reach, and was
    not disclosed to another host.
    """
    return [
        item
        for item in free
        if item.state is SliceState.FREE
        and item.lender != borrower
        and item.lender not in down
        and item.admitted
        and not item.leaving
        and (_on_demand(item) if item.kind is LenderKind.ACTIVE else _in_escrow(item, borrower, reach))
    ]


def _on_demand(item: Buffer) -> bool:
    """Return whether a lender that is awake can make a key of a buffer now: none of another host's may live."""
    return item.promised_to is None and not item.escrowed


def _in_escrow(item: Buffer, borrower: str, reach: Reach) -> bool:
    return item.promised_to in (None, borrower) and reach.covers(item)


def choose(free: Sequence[Buffer], count: int, *, guaranteed: bool) -> tuple[Buffer, ...]:
    """Return `count` of the buffers that a host may have: zombies' before those of active hosts.

    First what nobody else can have, as its key was disclosed to the host before. Spread evenly over lenders, so that
    the failure of one harms a part only. Of a request that is not `guaranteed` as many as there are. Raises
    BufferShortage, ValueError.
    """
    if count < 1:
        raise ValueError(f"no such request: {count} buffers")
    if guaranteed and len(free) < count:
        raise BufferShortage(
            f"{count} buffers are wanted and {len(free)} are free; have hosts lend more, or wait for a release"
        )
    taken: list[Buffer] = []
    for wanted in _PREFERRED:
        taken += _spread([item for item in free if wanted(item)], count - len(taken))
    return tuple(taken)


def to_ask(rooms: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many buffers hosts that are awake are asked for, by name (AS_get_free_mem): `count`, or all there are.

    `rooms`: how many more each can lend. Spread evenly: each time one of the host that has the most left.
    """
    left, asked = dict(rooms), Counter[str]()
    for _ in range(min(max(count, 0), sum(max(room, 0) for room in rooms.values()))):
        host = min(left, key=lambda name: (-left[name], name))
        left[host] -= 1
        asked[host] += 1
    return dict(asked)


class Supply(NamedTuple):
    """What a shortage can be met from, in buffers.

    `returning`: on their way back already, for anybody; `able`: those of best-effort loans that can give way besides.
    `coming`: on their way from active hosts; `rooms`: how many more each of these can lend, by name.
    """

    returning: int = 0
    able: int = 0
    coming: int = 0
    rooms: Mapping[str, int] = {}


class Demand(NamedTuple):
    """What a shortage is met from.

    `asked`: how many buffers each active host is asked for. `given_way`: how many best-effort loans are to have given,
    with what is on its way back anyway.
    """

    asked: Mapping[str, int]
    given_way: int


def to_find(missing: int, supply: Supply) -> Demand | None:
    """Return who makes room for a guaranteed loan (Zombieland, section 4.4): active hosts first, loans for the rest.

    What is on its way counts first, so that a repetition asks nobody for the same. None when all of it together is too
    little: then nobody is asked for anything.
    """
    left = missing - supply.coming - supply.returning
    asked = to_ask(supply.rooms, left)
    if left - sum(asked.values()) > supply.able:
        return None
    return Demand(asked, max(missing - supply.coming - sum(asked.values()), 0))


def to_be_lent(buffers: Iterable[Buffer], lends: Mapping[str, int], buffer_mib: int) -> dict[str, int]:
    """Return how many buffers hosts do not lend yet of what they are to lend in all (`lends`, in MiB), by name."""
    lent = Counter[str]()
    for item in buffers:
        lent[item.lender] += item.size_mib
    left = {host: (mib - lent[host]) // buffer_mib for host, mib in lends.items()}
    return {host: count for host, count in left.items() if count > 0}


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


def gives_way(item: Buffer, silent: Collection[str]) -> bool:
    """Return whether a buffer of a best-effort loan can become another's: who has it answers, its lender ends the key.

    Nobody ends a key whose lender sleeps or is about to, and what a host of `silent` ones has it keeps.
    """
    return item.state is SliceState.ONLINE and item.host not in silent and _can_be_anothers(item, silent)


def comes_back(item: Buffer, silent: Collection[str]) -> bool:
    """Return whether a buffer is on its way back, and anybody may have it then."""
    returning = item.state is SliceState.SANITIZING or (item.state is SliceState.RELEASING and item.host not in silent)
    return returning and _can_be_anothers(item, silent)


def to_give_way(buffers: Iterable[Buffer], count: int, consumers: Mapping[str, str]) -> tuple[Buffer, ...]:
    """Return `count` of the buffers that can give way: each time one of the consumer that has the most of them left.

    `consumers`: by allocation. Their mirrors serve the pages (Zombieland, section 4.4). None when they are too few.
    """
    found = list(buffers)
    if not 0 < count <= len(found):
        return ()
    return tuple(_spread(found, count, lambda item: consumers[item.allocation_uuid or ""]))


def _can_be_anothers(item: Buffer, silent: Collection[str]) -> bool:
    awake = item.kind is LenderKind.ACTIVE and item.lender not in silent
    return awake and _on_demand(item) and item.admitted and not item.leaving


def _spread(free: Iterable[Buffer], count: int, of: Callable[[Buffer], str] = lambda item: item.lender) -> list[Buffer]:
    """Return up to `count` buffers, each time one of the lender, or of another group, that has the most left."""
    left: dict[str, list[Buffer]] = defaultdict(list)
    for item in sorted(free, key=lambda item: -item.index):
        left[of(item)].append(item)
    taken: list[Buffer] = []
    while left and len(taken) < count:
        lender = min(left, key=lambda name: (-len(left[name]), name))
        taken.append(left[lender].pop())
        if not left[lender]:
            del left[lender]
    return taken
