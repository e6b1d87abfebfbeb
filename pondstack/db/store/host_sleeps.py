"""Hosts' sleeps in SQL. Each function is a part of the caller's transaction; times are the database's."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import HostSleepRow
from pondstack.domain.host_sleep import HostSleep, SleepState, Work


def get(session: Session, uuid: str) -> HostSleep | None:
    """Return one."""
    found = session.execute(_query().where(HostSleepRow.uuid == uuid)).one_or_none()
    return None if found is None else _value(*found)


def latest(session: Session, host: str) -> HostSleep | None:
    """Return the newest of a host."""
    query = _query().where(HostSleepRow.host == host)
    found = session.execute(query.order_by(HostSleepRow.created_at.desc(), HostSleepRow.uuid).limit(1)).one_or_none()
    return None if found is None else _value(*found)


def unended(session: Session) -> list[HostSleep]:
    """Return those that are open, the oldest first."""
    query = _query().where(HostSleepRow.ended_at.is_(None))
    rows = session.execute(query.order_by(HostSleepRow.created_at, HostSleepRow.uuid))
    return [_value(*found) for found in rows]


def latest_of(session: Session, hosts: Collection[str]) -> dict[str, HostSleep]:
    """Return the newest of each of some hosts that has one."""
    newest = (
        select(HostSleepRow.host, func.max(HostSleepRow.created_at).label("moment"))
        .where(HostSleepRow.host.in_(hosts))
        .group_by(HostSleepRow.host)
        .subquery()
    )
    same = (HostSleepRow.host == newest.c.host) & (HostSleepRow.created_at == newest.c.moment)
    found = [_value(*row) for row in session.execute(_query().join(newest, same))]
    return {item.host: item for item in found}


def add(session: Session, item: HostSleep) -> None:
    """Add one that begins now."""
    now = session.execute(select(now_seconds())).scalar_one()
    times = {"created_at": now, "updated_at": now, "state_since": now, "ended_at": None}
    session.execute(insert(HostSleepRow).values(uuid=item.uuid, **_values(item), **times))


def change(session: Session, item: HostSleep, *, moved: bool, ended: bool) -> None:
    """Write down what it is now; `moved`: into another state, `ended`: into one that nothing follows."""
    now = session.execute(select(now_seconds())).scalar_one()
    times = {"updated_at": now, **({"state_since": now} if moved else {}), **({"ended_at": now} if ended else {})}
    session.execute(
        update(HostSleepRow).where(HostSleepRow.uuid == item.uuid).values(**_values(item), **times),
        execution_options={"synchronize_session": False},
    )


def prune(session: Session, keep_seconds: float) -> int:
    """Forget those that ended longer ago; returns how many."""
    gone = session.execute(
        delete(HostSleepRow).where(HostSleepRow.ended_at < now_seconds() - keep_seconds),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(gone, CursorResult)
    return gone.rowcount


def _values(item: HostSleep) -> dict[str, Any]:
    return {
        "host": item.host,
        "driver": item.driver,
        "state": str(item.state),
        "reason": item.reason,
        "lent_mib": item.lent_mib,
        "work": item.work.to_record(),
    }


def _query() -> Select[Any]:
    return select(HostSleepRow, now_seconds()).execution_options(populate_existing=True)


def _value(row: HostSleepRow, now: float) -> HostSleep:
    return HostSleep(
        uuid=row.uuid,
        host=row.host,
        driver=row.driver,
        state=SleepState(row.state),
        reason=row.reason,
        lent_mib=row.lent_mib,
        work=Work.from_record(row.work),
        created_at=row.created_at,
        updated_at=row.updated_at,
        ended_at=row.ended_at,
        state_seconds=max(0.0, now - row.state_since),
    )
