"""Allocations in SQL. Called inside a transaction of the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, select, update
from sqlalchemy import insert as insert_into
from sqlalchemy.orm import Session, aliased

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, PoolRow, SliceRow, table
from pondstack.domain.model import Extent
from pondstack.domain.purpose import Purpose
from pondstack.ledger.store import AllocationEntry


def insert(
    session: Session,
    uuid: str,
    operation_id: str,
    pool_uuid: str,
    extents: Sequence[Mapping[str, int]],
    asked: Mapping[str, Any],
) -> None:
    """Add an allocation; `asked` is what the request says of consumer, host and sizes."""
    session.execute(
        insert_into(table(AllocationRow)).values(
            uuid=uuid,
            pool_uuid=pool_uuid,
            extents=extents,
            operation_id=operation_id,
            generation=0,
            created_at=now_seconds(),
            unclaimed_since=None,
            **asked,
        )
    )


def host_of(session: Session, uuid: str) -> str | None:
    """Return whose an allocation is, None when there is none."""
    return session.execute(select(AllocationRow.host).where(AllocationRow.uuid == uuid)).scalar_one_or_none()


def get(session: Session, uuid: str) -> AllocationEntry | None:
    """Return an allocation, None when there is none."""
    found = _found(session, AllocationRow.uuid == uuid)
    return found[0] if found else None


def of_consumer(
    session: Session, consumer_uuid: str, host: str, pool_uuid: str, purpose: Purpose
) -> list[AllocationEntry]:
    """Return what a consumer has of a pool on a host, for a purpose."""
    mine = AllocationRow.consumer_uuid == consumer_uuid, AllocationRow.host == host
    return _found(session, *mine, AllocationRow.pool_uuid == pool_uuid, AllocationRow.purpose == str(purpose))


def with_owner(session: Session, uuid: str) -> tuple[AllocationEntry | None, AllocationEntry | None]:
    """Return an allocation and the one whose slices are being handed over to it, None where there is none."""
    found = {
        item.uuid == uuid: item for item in _found(session, (AllocationRow.uuid == uuid) | (AllocationRow.heir == uuid))
    }
    return found.get(True), found.get(False)


def of_heirs(session: Session, host: str) -> list[AllocationEntry]:
    """Return whose slices are being handed over to allocations of a host."""
    heir = aliased(AllocationRow)
    return _found(session, AllocationRow.heir.in_(select(heir.uuid).where(heir.host == host)))


def set_heir(session: Session, uuid: str, heir: str | None) -> None:
    """Note which allocation the slices of another one are being handed over to, None: to none."""
    rows = table(AllocationRow)
    session.execute(update(rows).where(rows.c.uuid == uuid).values(heir=heir))


def _found(session: Session, *conditions: ColumnElement[bool]) -> list[AllocationEntry]:
    row = AllocationRow
    columns = (row.uuid, row.host, row.extents, row.generation, row.heir, row.write_back)
    query = select(*columns).where(*conditions).order_by(row.uuid)
    return [
        AllocationEntry(uuid, host, tuple(Extent(**item) for item in extents), generation > 0, heir, bool(write_back))
        for uuid, host, extents, generation, heir, write_back in session.execute(query)
    ]


def bump(session: Session, uuid: str) -> None:
    """Count a change of an allocation."""
    rows = table(AllocationRow)
    session.execute(update(rows).where(rows.c.uuid == uuid).values(generation=rows.c.generation + 1))


def on_node(session: Session, pool_uuid: str, host: str) -> dict[str, Purpose]:
    """Return who has allocations of a pool on a host, and what for, by consumer."""
    query = select(AllocationRow.consumer_uuid, AllocationRow.purpose)
    mine = query.where(AllocationRow.host == host, AllocationRow.pool_uuid == pool_uuid)
    return {consumer: Purpose(purpose) for consumer, purpose in session.execute(mine)}


def on_host(session: Session, host: str, purpose: Purpose) -> list[str]:
    """Return the allocations for a purpose on a host."""
    mine = select(AllocationRow.uuid).where(AllocationRow.host == host, AllocationRow.purpose == str(purpose))
    return list(session.execute(mine.order_by(AllocationRow.uuid)).scalars())


def facts(session: Session, uuid: str) -> dict[str, Any] | None:
    """Return what others are told of an allocation, None when there is none."""
    query = select(
        AllocationRow.uuid.label("allocation_uuid"),
        AllocationRow.consumer_uuid.label("instance_uuid"),
        AllocationRow.project_id,
        AllocationRow.user_id,
        AllocationRow.host,
        AllocationRow.pool_uuid,
        PoolRow.name.label("pool_name"),
        AllocationRow.pool_mib,
        AllocationRow.guest_mib,
    ).join(PoolRow, PoolRow.uuid == AllocationRow.pool_uuid)
    row = session.execute(query.where(AllocationRow.uuid == uuid)).mappings().one_or_none()
    return None if row is None else dict(row)


def unclaimed_seconds(session: Session, uuid: str) -> float | None:
    """Return since when an allocation has been unclaimed, None: it is claimed, or unknown."""
    query = select(now_seconds() - AllocationRow.unclaimed_since).where(AllocationRow.uuid == uuid)
    found: float | None = session.execute(query).scalar_one_or_none()
    return found


def mark_claims(session: Session, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
    """Note which allocations Placement backs with a claim; an unclaimed one keeps the moment of its first note."""
    changes = (
        (AllocationRow.unclaimed_since.is_not(None), claimed, None),
        (AllocationRow.unclaimed_since.is_(None), unclaimed, now_seconds()),
    )
    for condition, uuids, value in changes:
        if uuids:
            session.execute(
                update(AllocationRow).where(AllocationRow.uuid.in_(uuids), condition).values(unclaimed_since=value),
                execution_options={"synchronize_session": False},
            )


def drop_empty(session: Session, uuids: Iterable[str]) -> None:
    """Delete those of the allocations that no slice points at, now or once its owner lets go of it."""
    wanted = sorted(uuids)
    if not wanted:
        return
    # A table of its own, DISTINCT: else MariaDB and MySQL refuse to delete from what they read.
    heirs = select(AllocationRow.heir).where(AllocationRow.heir.in_(wanted)).distinct().subquery()
    session.execute(
        delete(AllocationRow).where(
            AllocationRow.uuid.in_(wanted),
            AllocationRow.uuid.not_in(select(heirs.c.heir)),
            ~exists().where(SliceRow.allocation_uuid == AllocationRow.uuid),
        ),
        execution_options={"synchronize_session": False},
    )
