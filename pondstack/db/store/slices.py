"""Slices in SQL. What a move means is pondstack.ledger.moves'; here it becomes a conditional UPDATE."""

from collections.abc import Iterable

from sqlalchemy import insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import SliceRow, table
from pondstack.domain.causes import stored
from pondstack.domain.model import Slice
from pondstack.domain.states import SliceState
from pondstack.ledger.moves import Change
from pondstack.ledger.store import CompareAndSetLost

_AT_ONCE = 500


def to_domain(row: SliceRow) -> Slice:
    """Return the row as a value of the domain."""
    state = SliceState(row.state)
    cause, failure = stored(state, row.cause, row.failure, row.reason)
    return Slice(row.pool_uuid, row.index, state, row.host, row.allocation_uuid, row.epoch, row.reason, cause, failure)


def add(session: Session, pool_uuid: str, indexes: range) -> None:
    """Add free slices of a pool."""
    for start in range(indexes.start, indexes.stop, _AT_ONCE):
        _insert(session, pool_uuid, range(start, min(start + _AT_ONCE, indexes.stop)))


def _insert(session: Session, pool_uuid: str, indexes: Iterable[int]) -> None:
    moment = session.execute(select(now_seconds())).scalar_one()
    session.execute(
        insert(SliceRow),
        [
            {
                "pool_uuid": pool_uuid,
                "index": index,
                "state": SliceState.FREE,
                "host": None,
                "allocation_uuid": None,
                "epoch": 0,
                "reason": "",
                "changed_at": moment,
            }
            for index in indexes
        ],
    )


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


def of_pool(session: Session, pool_uuid: str) -> list[Slice]:
    """Return all slices of a pool."""
    query = select(SliceRow).where(SliceRow.pool_uuid == pool_uuid).order_by(SliceRow.index)
    return [to_domain(row) for row in session.execute(query).scalars()]


def free_indexes(session: Session, pool_uuid: str) -> list[int]:
    """Return the indexes of the free slices of a pool."""
    query = select(SliceRow.index).where(SliceRow.pool_uuid == pool_uuid, SliceRow.state == SliceState.FREE)
    return list(session.execute(query).scalars())


def swap(session: Session, change: Change[Slice]) -> None:
    """Carry a change out, all or nothing; raises CompareAndSetLost: a slice is no longer as it was read."""
    after = change.after
    changed = session.execute(
        update(table(SliceRow))
        .where(
            SliceRow.pool_uuid == after.pool_uuid,
            SliceRow.index.in_(change.indexes),
            SliceRow.state == change.state,
            SliceRow.allocation_uuid.is_(None) if change.owner is None else SliceRow.allocation_uuid == change.owner,
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
    if changed.rowcount != len(change.indexes):
        raise CompareAndSetLost(f"slices {change.indexes} of pool {after.pool_uuid} are no longer {change.state}")
