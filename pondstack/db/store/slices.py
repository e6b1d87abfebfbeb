"""Slices in SQL. What a move means is pondstack.ledger.slice_moves'; here it becomes a conditional UPDATE."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.retry import CompareAndSetLost
from pondstack.db.models import SliceRow, table
from pondstack.domain.causes import stored
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceEvent, SliceState
from pondstack.ledger.slice_moves import Swap, plan


def to_domain(row: SliceRow) -> Slice:
    """Return the row as a value of the domain."""
    state = SliceState(row.state)
    cause, failure = stored(state, row.cause, row.failure, row.reason)
    return Slice(row.pool_uuid, row.index, state, row.host, row.allocation_uuid, row.epoch, row.reason, cause, failure)


def of_allocation(session: Session, allocation_uuid: str) -> list[Slice]:
    """Return the slices that point at an allocation."""
    query = select(SliceRow).where(SliceRow.allocation_uuid == allocation_uuid).order_by(SliceRow.index)
    return [to_domain(row) for row in session.execute(query).scalars()]


def at(session: Session, pool_uuid: str, indexes: Iterable[int]) -> list[Slice]:
    """Return some slices of a pool."""
    query = select(SliceRow).where(SliceRow.pool_uuid == pool_uuid, SliceRow.index.in_(sorted(indexes)))
    return [to_domain(row) for row in session.execute(query.order_by(SliceRow.index)).scalars()]


def of_host(session: Session, host: str) -> list[Slice]:
    """Return the slices that a host owns, or that are aside because of it."""
    query = select(SliceRow).where(SliceRow.host == host).order_by(SliceRow.pool_uuid, SliceRow.index)
    return [to_domain(row) for row in session.execute(query).scalars()]


def free_indexes(session: Session, pool_uuid: str) -> list[int]:
    """Return the indexes of the free slices of a pool."""
    query = select(SliceRow.index).where(SliceRow.pool_uuid == pool_uuid, SliceRow.state == SliceState.FREE)
    return list(session.execute(query).scalars())


def move(session: Session, items: Sequence[Slice], *events: SliceEvent, **target: Any) -> list[dict[str, Any]]:
    """Take slices through `events`, all or none; returns the moves for the journal. `target`: see moves.plan.

    Raises IllegalTransition, CompareAndSetLost (a slice is no longer as it was read).
    """
    swaps = plan(items, *events, **target)
    for swap in swaps:
        _swap(session, swap)
    return [swap.move() for swap in swaps]


def _swap(session: Session, swap: Swap) -> None:
    after = swap.after
    changed = session.execute(
        update(table(SliceRow))
        .where(
            SliceRow.pool_uuid == after.pool_uuid,
            SliceRow.index.in_(swap.indexes),
            SliceRow.state == swap.state,
            SliceRow.allocation_uuid.is_(None) if swap.owner is None else SliceRow.allocation_uuid == swap.owner,
        )
        .values(
            state=after.state,
            host=after.host,
            allocation_uuid=after.allocation_uuid,
            epoch=after.epoch,
            reason=after.reason,
            cause=after.cause,
            failure=after.failure,
            changed_at=now_seconds(),
        )
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount != len(swap.indexes):
        raise CompareAndSetLost(f"slices {swap.indexes} of pool {after.pool_uuid} are no longer {swap.state}")
