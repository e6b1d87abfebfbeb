"""Moves: what an operation did to slices, as the journal keeps it, and the slices that replaying them gives. Pure.

A move is {"pool", "indexes", "from", "to", "host", "allocation", "reason"}: slices of one pool that went from one state
to another, and whose they are afterwards. "from" is None for slices that a device brought along.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pondstack.domain.model import Slice
from pondstack.domain.states import SliceState

MOVES = "moves"
Key = tuple[str, int]


class OutOfStep(Exception):
    """A move starts from a state that the slice does not have: something is missing before it."""


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
            changed[key] = replace(
                before or Slice(*key),
                state=SliceState(move["to"]),
                host=move["host"],
                allocation_uuid=move["allocation"],
                epoch=epoch if before else 0,
                reason=move["reason"],
            )
    return changed
