"""Moves of slices in a MemoryStore; what pondstack.db.slices is in SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pondstack.db.moves import describe
from pondstack.db.slices import LET_GO, group_by_fate
from pondstack.domain.ledger import transition
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


def free_indexes(tx: Transaction, pool_uuid: str) -> list[int]:
    """Return the indexes of the free slices of a pool."""
    rows = (row.item for row in tx.tables.slices.values())
    return [item.index for item in rows if item.pool_uuid == pool_uuid and item.state is SliceState.FREE]


def move(
    tx: Transaction,
    items: Sequence[Slice],
    *events: SliceEvent,
    epoch: int,
    host: str | None = None,
    allocation_uuid: str | None = None,
    reason: str = "",
) -> list[dict[str, Any]]:
    """Take slices of one pool through `events`, all or none (with the transaction); returns the moves for the journal.

    Raises IllegalTransition.
    """
    groups: dict[tuple[SliceState, Slice], list[int]] = {}
    now = tx.now()
    for item in items:
        after = item
        for event in events:
            after = transition(
                after, event, epoch=epoch, host=host, allocation_uuid=allocation_uuid, reason=reason[:1000]
            )
        groups.setdefault((item.state, replace(after, index=0)), []).append(item.index)
        tx.put(tx.tables.slices, (item.pool_uuid, item.index), SliceRow(after, now))
    return [describe(state, after, indexes) for (state, after), indexes in groups.items()]


def of_host(tx: Transaction, host: str) -> list[Slice]:
    """Return the slices that a host owns, or that are aside because of it."""
    rows = (row.item for row in tx.tables.slices.values())
    return sorted((item for item in rows if item.host == host), key=lambda item: (item.pool_uuid, item.index))


def let_go(tx: Transaction, items: Sequence[Slice], epoch: int) -> list[dict[str, Any]]:
    """Take slices through what their host's word "I do not hold it" makes of them."""
    moves = []
    for (state, reason), mine in sorted(group_by_fate(items).items()):
        events = (SliceEvent.AUDIT, SliceEvent.QUARANTINE) if reason else LET_GO[SliceState(state)]
        moves += move(tx, mine, *events, epoch=epoch, reason=reason)
    return moves


def drop_empty_allocations(tx: Transaction, uuids: Iterable[str]) -> None:
    """Delete those of the allocations that no slice points at any more."""
    held = {row.item.allocation_uuid for row in tx.tables.slices.values()}
    for uuid in sorted(uuids):
        if uuid in tx.tables.allocations and uuid not in held:
            tx.delete(tx.tables.allocations, uuid)
