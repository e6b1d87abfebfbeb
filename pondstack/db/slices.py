"""Moves of slices in SQL. What a move means is pondstack.domain.ledger's; here it becomes a conditional UPDATE."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import delete, exists, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.clock import now_seconds
from pondstack.db.models import AllocationRow, SliceRow, table
from pondstack.db.moves import describe
from pondstack.db.retry import CompareAndSetLost
from pondstack.domain.ledger import transition
from pondstack.domain.model import Slice
from pondstack.domain.states import DEVICE_FAILED, SliceEvent, SliceState

LET_GO = {
    SliceState.ASSIGNING: (SliceEvent.RELEASE, SliceEvent.CONFIRM),
    SliceState.ONLINE: (SliceEvent.RELEASE, SliceEvent.CONFIRM),
    SliceState.RELEASING: (SliceEvent.CONFIRM,),
    SliceState.QUARANTINED: (SliceEvent.AUDIT,),
}
"""What the host's word "I do not hold it" makes of a slice of the allocation, unless its device failed."""


def to_domain(row: SliceRow) -> Slice:
    """Return the row as a value of the domain."""
    return Slice(row.pool_uuid, row.index, SliceState(row.state), row.host, row.allocation_uuid, row.epoch, row.reason)


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


def move(
    session: Session,
    items: Sequence[Slice],
    *events: SliceEvent,
    epoch: int,
    host: str | None = None,
    allocation_uuid: str | None = None,
    reason: str = "",
) -> list[dict[str, Any]]:
    """Take slices through `events`, all or none; returns the moves for the journal.

    Without an event they stay in their state and get the reason that `items` give them.

    Raises IllegalTransition, CompareAndSetLost (a slice is no longer as it was read).
    """
    groups: dict[tuple[str, SliceState, str | None, Slice], list[int]] = {}
    for item in items:
        after = item
        for event in events:
            after = transition(
                after, event, epoch=epoch, host=host, allocation_uuid=allocation_uuid, reason=reason[:1000]
            )
        pattern = Slice(after.pool_uuid, 0, after.state, after.host, after.allocation_uuid, epoch, after.reason)
        groups.setdefault((item.pool_uuid, item.state, item.allocation_uuid, pattern), []).append(item.index)
    for (pool_uuid, state, owner, after), indexes in groups.items():
        _swap(session, pool_uuid, indexes, state, owner, after)
    return [describe(state, after, indexes) for (_pool, state, _owner, after), indexes in groups.items()]


def let_go(session: Session, items: Sequence[Slice], epoch: int) -> list[dict[str, Any]]:
    """Take an allocation's slices through what their host's word "I do not hold it" makes of them."""
    moves = []
    for (state, reason), mine in sorted(group_by_fate(items).items()):
        events = (SliceEvent.AUDIT, SliceEvent.QUARANTINE) if reason else LET_GO[SliceState(state)]
        moves += move(session, mine, *events, epoch=epoch, reason=reason)
    return moves


def group_by_fate(items: Iterable[Slice]) -> dict[tuple[str, str], list[Slice]]:
    """Return slices by state and by the reason for which they stay aside, "" for those that do not."""
    groups: dict[tuple[str, str], list[Slice]] = {}
    for item in items:
        stays = item.state is SliceState.QUARANTINED and item.reason.startswith(DEVICE_FAILED)
        groups.setdefault((str(item.state), item.reason if stays else ""), []).append(item)
    return groups


def _swap(
    session: Session, pool_uuid: str, indexes: list[int], state: SliceState, owner: str | None, after: Slice
) -> None:
    changed = session.execute(
        update(table(SliceRow))
        .where(
            SliceRow.pool_uuid == pool_uuid,
            SliceRow.index.in_(indexes),
            SliceRow.state == state,
            SliceRow.allocation_uuid.is_(None) if owner is None else SliceRow.allocation_uuid == owner,
        )
        .values(
            state=after.state,
            host=after.host,
            allocation_uuid=after.allocation_uuid,
            epoch=after.epoch,
            reason=after.reason,
            changed_at=now_seconds(),
        )
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount != len(indexes):
        raise CompareAndSetLost(f"slices {indexes} of pool {pool_uuid} are no longer {state}")


def drop_empty_allocations(session: Session, uuids: Iterable[str]) -> None:
    """Delete those of the allocations that no slice points at any more."""
    session.execute(
        delete(AllocationRow).where(
            AllocationRow.uuid.in_(sorted(uuids)),
            ~exists().where(SliceRow.allocation_uuid == AllocationRow.uuid),
        ),
        execution_options={"synchronize_session": False},
    )
