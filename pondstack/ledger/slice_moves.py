"""Moves: what an operation does to slices, as the journal keeps it, and the slices that replaying them gives. Pure.

A move is {"pool", "indexes", "from", "to", "host", "allocation", "reason", "cause", "failure"}: slices of one pool that
went from one state to another, and whose they are afterwards. "from" is None for slices that a device brought along.
The former release neither writes nor reads "cause" and "failure".
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pondstack.domain.causes import Cause, stored
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.domain.transitions import transition

MOVES = "moves"
Key = tuple[str, int]


class OutOfStep(Exception):
    """A move starts from a state that the slice does not have: something is missing before it."""


class Swap(NamedTuple):
    """Slices of one pool that leave one state and owner together; `after`, of index 0, stands for each of them."""

    state: SliceState
    owner: str | None
    after: Slice
    indexes: list[int]

    def move(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return describe(self.state, self.after, self.indexes)


def plan(
    items: Iterable[Slice],
    *events: SliceEvent,
    epoch: int,
    host: str | None = None,
    allocation_uuid: str | None = None,
    reason: str = "",
    cause: Cause | None = None,
    failure: int | None = None,
) -> list[Swap]:
    """Return what takes slices through `events`, for whoever keeps them to carry out; raises IllegalTransition.

    Without an event they stay in their state and get the reason, cause and failure that `items` give them.
    """
    groups: dict[tuple[SliceState, str | None, Slice], list[int]] = {}
    for item in items:
        after = item
        for event in events:
            after = transition(
                after, event, epoch=epoch, host=host, allocation_uuid=allocation_uuid, reason=reason[:1000], cause=cause
            )
        if events:
            after = replace(after, failure=failure if after.cause is Cause.DEVICE_FAILED else None)
        pattern = replace(after, index=0, epoch=epoch)
        groups.setdefault((item.state, item.allocation_uuid, pattern), []).append(item.index)
    return [Swap(*group, indexes) for group, indexes in groups.items()]


def describe(before: SliceState | None, after: Slice, indexes: Iterable[int]) -> dict[str, Any]:
    """Return the move of some slices that all went the same way; `after` stands for each of them."""
    return {
        "pool": after.pool_uuid,
        "indexes": sorted(indexes),
        "from": None if before is None else str(before),
        "to": str(after.state),
        "host": after.host,
        "allocation": after.allocation_uuid,
        "reason": after.reason,
        "cause": after.cause and str(after.cause),
        "failure": after.failure,
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
