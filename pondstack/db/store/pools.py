"""Pools in SQL. Called inside a transaction of the ledger."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, delete, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import HostPoolRow, HostRow, PoolRow, SliceRow, table
from pondstack.db.store import hosts
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.model import PoolState
from pondstack.ledger.store import PoolEntry, Reach


def get(session: Session, uuid: str) -> PoolEntry | None:
    """Return a pool, None when there is none."""
    row = session.execute(select(PoolRow).where(PoolRow.uuid == uuid)).scalar_one_or_none()
    return None if row is None else _entry(row)


def named(session: Session, name: str) -> str | None:
    """Return the UUID of the pool of a name."""
    return session.execute(select(PoolRow.uuid).where(PoolRow.name == name)).scalar_one_or_none()


def add(session: Session, uuid: str, serial: str, slice_mib: int, values: Mapping[str, Any]) -> None:
    """Add a pool, which is UP."""
    session.execute(
        insert(table(PoolRow)).values(
            uuid=uuid,
            serial=serial,
            slice_mib=slice_mib,
            state=PoolState.UP,
            generation=0,
            created_at=now_seconds(),
            **values,
        )
    )


def free_buffer(session: Session, uuid: str) -> FreeBuffer | None:
    """Return the free buffer of a pool, None when there is no such pool."""
    found = session.execute(select(PoolRow.free_buffer).where(PoolRow.uuid == uuid)).one_or_none()
    return None if found is None else FreeBuffer.from_record(found.free_buffer)


def change(session: Session, uuid: str, values: Mapping[str, Any]) -> None:
    """Write values of a pool down."""
    session.execute(update(table(PoolRow)).where(PoolRow.uuid == uuid).values(**values))


def change_state(session: Session, uuid: str, state: PoolState) -> None:
    """Write a pool's health down, and count the change."""
    rows = table(PoolRow)
    session.execute(update(rows).where(rows.c.uuid == uuid).values(state=state, generation=rows.c.generation + 1))


def reach(session: Session, uuid: str, host: str) -> Reach:
    """Return a pool, a host and whether it reaches the pool, in one look."""
    query = (
        select(PoolRow, HostRow, hosts.SILENT_SECONDS, HostPoolRow)
        .select_from(PoolRow)
        .outerjoin(HostRow, HostRow.name == host)
        .outerjoin(HostPoolRow, and_(HostPoolRow.host == HostRow.name, HostPoolRow.pool_uuid == PoolRow.uuid))
        .where(PoolRow.uuid == uuid)
    )
    found = session.execute(query).one_or_none()
    if found is None:
        return Reach(None, None, False)
    pool, row, silent_seconds, link = found
    return Reach(_entry(pool), None if row is None else hosts.entry(row, silent_seconds), link is not None)


def remove(session: Session, uuid: str) -> None:
    """Delete a pool with its slices, and who reached it."""
    session.execute(delete(table(HostPoolRow)).where(HostPoolRow.pool_uuid == uuid))
    session.execute(delete(table(SliceRow)).where(SliceRow.pool_uuid == uuid))
    session.execute(delete(table(PoolRow)).where(PoolRow.uuid == uuid))


def _entry(row: PoolRow) -> PoolEntry:
    return PoolEntry(row.uuid, row.name, row.slice_mib, row.slices_total, PoolState(row.state))
