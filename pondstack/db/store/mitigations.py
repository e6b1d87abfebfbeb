"""Mitigations in SQL. Each function is a part of the caller's transaction; times are the database's."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, delete, insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import MitigationRow
from pondstack.db.store.newest_first import newest_first
from pondstack.domain.errors import NotFound
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger, Work
from pondstack.ledger.records import MitigationRecord


def get(session: Session, uuid: str) -> Mitigation | None:
    """Return one."""
    found = session.execute(_query().where(MitigationRow.uuid == uuid)).one_or_none()
    return None if found is None else _value(*found)


def latest(session: Session, consumer_uuid: str) -> Mitigation | None:
    """Return the newest of a consumer."""
    query = _query().where(MitigationRow.consumer_uuid == consumer_uuid)
    found = session.execute(query.order_by(MitigationRow.created_at.desc(), MitigationRow.uuid).limit(1)).one_or_none()
    return None if found is None else _value(*found)


def unended(session: Session) -> list[Mitigation]:
    """Return those that are open, the oldest first."""
    query = _query().where(MitigationRow.ended_at.is_(None))
    rows = session.execute(query.order_by(MitigationRow.created_at, MitigationRow.uuid))
    return [_value(*found) for found in rows]


def add(session: Session, item: Mitigation) -> None:
    """Add one that begins now."""
    now = session.execute(select(now_seconds())).scalar_one()
    times = {"created_at": now, "updated_at": now, "state_since": now, "ended_at": None}
    session.execute(insert(MitigationRow).values(uuid=item.uuid, **_values(item), **times))


def change(session: Session, item: Mitigation, *, moved: bool, ended: bool) -> None:
    """Write down what it is now; `moved`: into another state, `ended`: into one that nothing follows."""
    now = session.execute(select(now_seconds())).scalar_one()
    times = {"updated_at": now, **({"state_since": now} if moved else {}), **({"ended_at": now} if ended else {})}
    session.execute(
        update(MitigationRow).where(MitigationRow.uuid == item.uuid).values(**_values(item), **times),
        execution_options={"synchronize_session": False},
    )


def prune(session: Session, keep_seconds: float) -> int:
    """Forget those that ended longer ago; returns how many."""
    gone = session.execute(
        delete(MitigationRow).where(MitigationRow.ended_at < now_seconds() - keep_seconds),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(gone, CursorResult)
    return gone.rowcount


def record(session: Session, uuid: str) -> MitigationRecord:
    """Return one; raises NotFound."""
    row = session.get(MitigationRow, uuid)
    if row is None:
        raise NotFound(f"there is no mitigation {uuid}; list the mitigations")
    return _record(row)


def records(
    session: Session,
    chosen: Mapping[str, str | None],
    *,
    open_only: bool = False,
    limit: int | None = None,
    marker: str | None = None,
) -> list[MitigationRecord]:
    """Return those that have the `chosen` columns' values, None: any, the newest first; raises NotFound for a marker.

    A marker that was not chosen is as unknown as one that does not exist.
    """
    query = select(MitigationRow)
    for column, value in chosen.items():
        if value is not None:
            query = query.where(getattr(MitigationRow, column) == value)
    if open_only:
        query = query.where(MitigationRow.ended_at.is_(None))
    query = newest_first(session, query, MitigationRow, "mitigation", marker, chosen)
    return [_record(row) for row in session.execute(query.limit(limit)).scalars()]


def _values(item: Mitigation) -> dict[str, Any]:
    return {
        "consumer_uuid": item.consumer_uuid,
        "host": item.host,
        "project_id": item.project_id,
        "method": str(item.method),
        "state": str(item.state),
        "trigger": str(item.trigger),
        "forced": item.forced,
        "pool_mib": item.pool_mib,
        "left_mib": item.left_mib,
        "reason": item.reason,
        "evidence": dict(item.evidence),
        "work": asdict(item.work),
    }


def _common(row: MitigationRow) -> dict[str, Any]:
    return {
        "uuid": row.uuid,
        "consumer_uuid": row.consumer_uuid,
        "host": row.host,
        "project_id": row.project_id,
        "method": MitigationMethod(row.method),
        "state": MitigationState(row.state),
        "trigger": MitigationTrigger(row.trigger),
        "forced": row.forced,
        "pool_mib": row.pool_mib,
        "left_mib": row.left_mib,
        "reason": row.reason,
        "evidence": dict(row.evidence),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "ended_at": row.ended_at,
    }


def _query() -> Select[Any]:
    return select(MitigationRow, now_seconds()).execution_options(populate_existing=True)


def _value(row: MitigationRow, now: float) -> Mitigation:
    work = Work.from_record(row.work)
    return Mitigation(**_common(row), work=work, state_seconds=max(0.0, now - row.state_since))


def _record(row: MitigationRow) -> MitigationRecord:
    return MitigationRecord(**_common(row))
