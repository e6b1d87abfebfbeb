"""Moves: what an operation does to slices and buffers, as the journal keeps it, and what replaying them gives. Pure.

A move is {"pool" or "lender", "indexes", "from", "to", "host", "allocation", "reason", "cause", "failure"}: slices of
one pool, or buffers of one lender (without "failure"), that went from one state to another, and whose they are
afterwards. "from" is None for slices that a device brought along. The former release neither writes nor reads "cause"
and "failure". A follower replays the moves of slices; it reads buffers anew, their moves are for operators.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pondstack.domain.causes import Cause, stored
from pondstack.domain.lending import Buffer
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.domain.transitions import transition

Memory = TypeVar("Memory", Slice, Buffer)
Moves = list[dict[str, Any]]

MOVES, BUFFER_MOVES = "moves", "buffer_moves"
"""Where the effect of an operation, in the journal, has them."""

HEIRS = "heirs"
"""Where it has which allocations got an heir (its UUID), or have none any more (None), by UUID."""

REMOVE_POOL, DIRTY = "remove_pool", "aside"
"""The operation by which a pool was removed, which is kept for good, and where its effect names slices to sanitise."""

MOST_OF_A_REASON = 1000
Key = tuple[str, int]


class OutOfStep(Exception):
    """A move starts from a state that the slice does not have: something is missing before it."""


@dataclass(frozen=True, slots=True)
class Change(Generic[Memory]):
    """Slices of one pool, or buffers of one lender, that leave one state and owner together.

    `after`, of index 0, stands for each of them; `assigned`: each has an owner more (a buffer's generation grows).
    """

    state: SliceState
    owner: str | None
    after: Memory
    indexes: list[int]
    assigned: bool

    def move(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return describe(self.state, self.after, self.indexes)


def plan(
    items: Iterable[Memory],
    *events: SliceEvent,
    epoch: int,
    host: str | None = None,
    allocation_uuid: str | None = None,
    reason: str = "",
    cause: Cause | None = None,
    failure: int | None = None,
) -> list[Change[Memory]]:
    """Return what takes slices or buffers through `events`, for a store to carry out; raises IllegalTransition.

    Without an event they stay in their state and get the reason, cause and failure that `items` give them.
    """
    groups: dict[tuple[SliceState, str | None, Memory], list[int]] = {}
    for item in items:
        after = item
        for event in events:
            after = transition(
                after,
                event,
                epoch=epoch,
                host=host,
                allocation_uuid=allocation_uuid,
                reason=reason[:MOST_OF_A_REASON],
                cause=cause,
            )
        if events and isinstance(after, Slice):
            after = replace(after, failure=failure if after.cause is Cause.DEVICE_FAILED else None)
        groups.setdefault((item.state, item.allocation_uuid, _pattern(after, epoch)), []).append(item.index)
    assigned = SliceEvent.ASSIGN in events
    return [Change(*group, indexes, assigned) for group, indexes in groups.items()]


def move(
    swap: Callable[[Any, Change[Memory]], None], tx: Any, items: Sequence[Memory], *events: SliceEvent, **target: Any
) -> Moves:
    """Take slices or buffers through `events`, all or none, by a store's `swap`; returns the moves for the journal.

    `target`: see plan. Raises IllegalTransition, CompareAndSetLost.
    """
    changes = plan(items, *events, **target)
    for change in changes:
        swap(tx, change)
    return [change.move() for change in changes]


def describe(before: SliceState | None, after: Slice | Buffer, indexes: Iterable[int]) -> dict[str, Any]:
    """Return the move of some that all went the same way; `after` stands for each of them."""
    return {
        **({"pool": after.pool_uuid} if isinstance(after, Slice) else {"lender": after.lender}),
        "indexes": sorted(indexes),
        "from": None if before is None else str(before),
        "to": str(after.state),
        "host": after.host,
        "allocation": after.allocation_uuid,
        "reason": after.reason,
        "cause": after.cause and str(after.cause),
        **({"failure": after.failure} if isinstance(after, Slice) else {}),
    }


def replay(slices: Mapping[Key, Slice], moves: Iterable[Mapping[str, Any]], epoch: int) -> dict[Key, Slice]:
    """Return the slices that `moves`, made under `epoch`, changed, as they are afterwards; raises OutOfStep."""
    changed: dict[Key, Slice] = {}
    for move in moves:
        for index in move["indexes"]:
            key = (move["pool"], index)
            before = changed.get(key, slices.get(key))
            found = None if before is None else str(before.state)
            if found != move["from"]:
                raise OutOfStep(f"slice {key[0]}/{index} is {found} and cannot go from {move['from']} to {move['to']}")
            state = SliceState(move["to"])
            cause, failure = stored(state, move.get("cause"), move.get("failure"), move["reason"])
            changed[key] = replace(
                before or Slice(*key),
                state=state,
                host=move["host"],
                allocation_uuid=move["allocation"],
                epoch=epoch if before else 0,
                reason=move["reason"],
                cause=cause,
                failure=failure,
            )
    return changed


def _pattern(item: Memory, epoch: int) -> Memory:
    """Return what stands for `item` and all that differ from it in what no move tells only."""
    if isinstance(item, Buffer):
        item = replace(
            item, generation=0, promised_to=None, leaving=False, admitted=True, escrowed=False, heir=None, shared=False
        )
        return replace(item, index=0, offset_mib=0, epoch=epoch)
    return replace(item, index=0, epoch=epoch)
