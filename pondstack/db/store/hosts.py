"""Hosts in SQL, with their newest reports. Called inside a transaction of the ledger."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import HostPoolRow, HostRow, PoolRow, table
from pondstack.ledger.store import HostEntry

SILENT_SECONDS = now_seconds() - HostRow.last_heartbeat


def get(session: Session, name: str) -> HostEntry | None:
    """Return a host, None when its agent has never reported."""
    found = session.execute(select(HostRow, SILENT_SECONDS).where(HostRow.name == name)).one_or_none()
    return None if found is None else entry(*found)


def entry(row: HostRow, silent_seconds: float) -> HostEntry:
    """Return the row as the rules see it."""
    return HostEntry(
        name=row.name,
        enabled=row.enabled,
        disabled_reason=row.disabled_reason,
        generation=row.generation,
        sequence=row.sequence,
        silent_seconds=silent_seconds,
        attached=tuple(row.attached),
        fenced=None if row.fenced_at is None else row.fenced_reason,
        reported_since_fenced=row.fenced_at is None or row.last_heartbeat > row.fenced_at,
        tiering_on=row.tiering_on,
    )


def report(session: Session, name: str, values: Mapping[str, Any]) -> None:
    """Write a host's report down, now; the first one adds the host, enabled."""
    present = {**values, "last_heartbeat": now_seconds()}
    if session.execute(select(HostRow.name).where(HostRow.name == name)).scalar_one_or_none() is None:
        new = {"enabled": True, "disabled_reason": "", "generation": 0, "provider_uuid": None}
        session.execute(insert(table(HostRow)).values(name=name, created_at=now_seconds(), **new, **present))
    else:
        change(session, name, present)


def set_reach(session: Session, name: str, pools: Iterable[str]) -> bool:
    """Write down which of the known pools a host reaches; returns whether that is new."""
    known = set(session.execute(select(PoolRow.uuid).where(PoolRow.uuid.in_(sorted(pools)))).scalars())
    present = set(session.execute(select(HostPoolRow.pool_uuid).where(HostPoolRow.host == name)).scalars())
    for uuid in sorted(known - present):
        session.execute(insert(table(HostPoolRow)).values(host=name, pool_uuid=uuid))
    if gone := sorted(present - known):
        session.execute(delete(table(HostPoolRow)).where(HostPoolRow.host == name, HostPoolRow.pool_uuid.in_(gone)))
    return known != present


def change(session: Session, name: str, values: Mapping[str, Any]) -> None:
    """Write values of a host down."""
    session.execute(update(table(HostRow)).where(HostRow.name == name).values(**values))


def fence(session: Session, name: str, reason: str) -> None:
    """Note that a host is fenced, now."""
    rows = table(HostRow)
    change(session, name, {"fenced_at": now_seconds(), "fenced_reason": reason, "generation": rows.c.generation + 1})


def unfence(session: Session, name: str) -> None:
    """Note that a host is fenced no more."""
    rows = table(HostRow)
    change(session, name, {"fenced_at": None, "fenced_reason": "", "generation": rows.c.generation + 1})


def remove(session: Session, name: str) -> None:
    """Delete a host, and what it reached."""
    session.execute(delete(table(HostPoolRow)).where(HostPoolRow.host == name))
    session.execute(delete(table(HostRow)).where(HostRow.name == name))
