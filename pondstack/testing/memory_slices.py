"""Slices in a MemoryStore; what pondstack.db.slices is in SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pondstack.db.moves import Swap, plan
from pondstack.db.retry import CompareAndSetLost
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.testing.memory_store import SliceRow, Transaction


def of_allocation(tx: Transaction, allocation_uuid: str) -> list[Slice]:
    """Return the slices that point at an allocation."""
    rows = (row.item for row in tx.tables.slices.values())
    return sorted((item for item in rows if item.allocation_uuid == allocation_uuid), key=lambda item: item.index)


def at(tx: Transaction, pool_uuid: str, indexes: Iterable[int]) -> list[Slice]:
    """Return some slices of a pool."""
    found = (tx.tables.slices.get((pool_uuid, index)) for index in sorted(indexes))
    return [row.item for row in found if row is not None]


def of_host(tx: Transaction, host: str) -> list[Slice]:
    """Return the slices that a host owns, or that are aside because of it."""
    rows = (row.item for row in tx.tables.slices.values())
    return sorted((item for item in rows if item.host == host), key=lambda item: (item.pool_uuid, item.index))


def free_indexes(tx: Transaction, pool_uuid: str) -> list[int]:
    """Return the indexes of the free slices of a pool."""
    rows = (row.item for row in tx.tables.slices.values())
    return [item.index for item in rows if item.pool_uuid == pool_uuid and item.state is SliceState.FREE]


def move(tx: Transaction, items: Sequence[Slice], *events: SliceEvent, **target: Any) -> list[dict[str, Any]]:
    """Take slices through `events`, all or none; returns the moves for the journal. `target`: see moves.plan.

    Raises IllegalTransition, CompareAndSetLost (a slice is no longer as it was read).
    """
    swaps = plan(items, *events, **target)
    for swap in swaps:
        _swap(tx, swap)
    return [swap.move() for swap in swaps]


def _swap(tx: Transaction, swap: Swap) -> None:
    rows, now = tx.tables.slices, tx.now()
    for index in swap.indexes:
        key = (swap.after.pool_uuid, index)
        present = rows[key].item
        if (present.state, present.allocation_uuid) != (swap.state, swap.owner):
            raise CompareAndSetLost(f"slice {index} of pool {swap.after.pool_uuid} is no longer {swap.state}")
        tx.put(rows, key, SliceRow(replace(swap.after, index=index), now))
