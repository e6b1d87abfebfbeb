"""What hosts are to hold of pools for themselves, in SQL. Called inside a transaction of the ledger."""

from typing import Any

from sqlalchemy import ColumnElement, Row, delete, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.models import HoldingRow, table
from pondstack.domain.host_slices import Holding, HoldingKey
from pondstack.domain.purpose import Purpose

_C = table(HoldingRow).c
_ALL = select(table(HoldingRow)).order_by(_C.host, _C.pool_uuid, _C.purpose)


def get(session: Session, key: HoldingKey) -> Holding | None:
    """Return what a host is to hold for one purpose, None when nothing."""
    rows = table(HoldingRow)
    found = session.execute(select(rows).where(*_is(key))).one_or_none()
    return None if found is None else _holding(found)


def find(session: Session) -> list[Holding]:
    """Return all, by host, pool and purpose."""
    return [_holding(row) for row in session.execute(_ALL)]


def put(session: Session, item: Holding) -> None:
    """Add one, or write down what it is now."""
    rows, values = table(HoldingRow), {"wanted": item.wanted, "reason": item.reason}
    if get(session, item.key) is None:
        key = {"host": item.host, "pool_uuid": item.pool_uuid, "purpose": str(item.purpose)}
        session.execute(insert(rows).values(**key, **values))
    else:
        session.execute(update(rows).where(*_is(item.key)).values(**values))


def remove(session: Session, key: HoldingKey) -> None:
    """Delete one, if it is there."""
    session.execute(delete(table(HoldingRow)).where(*_is(key)))


def _is(key: HoldingKey) -> tuple[ColumnElement[bool], ...]:
    columns = table(HoldingRow).c
    return columns.host == key.host, columns.pool_uuid == key.pool_uuid, columns.purpose == str(key.purpose)


def _holding(row: Row[Any]) -> Holding:
    return Holding(row.host, row.pool_uuid, Purpose(row.purpose), row.wanted, row.reason)
