"""What hosts are to lend, in SQL: one row per host, until it has ended. Called inside a transaction of the ledger."""

from dataclasses import asdict

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import LendRow, table
from pondstack.domain.admission import Lend, LendStage
from pondstack.domain.lending import LenderKind


def get(session: Session, host: str) -> Lend | None:
    """Return what a host is to lend, None when nothing is under way."""
    row = session.get(LendRow, host)
    return None if row is None else lend_of(row)


def find(session: Session) -> list[Lend]:
    """Return all that are under way, by host."""
    return [lend_of(row) for row in session.execute(select(LendRow).order_by(LendRow.host)).scalars()]


def put(session: Session, item: Lend) -> None:
    """Add one, or write down what it is now."""
    values = {name: value for name, value in asdict(item).items() if name != "host"}
    rows = table(LendRow)
    if session.execute(select(LendRow.host).where(LendRow.host == item.host)).scalar_one_or_none() is None:
        session.execute(insert(rows).values(host=item.host, created_at=now_seconds(), **values))
    else:
        session.execute(update(rows).where(rows.c.host == item.host).values(**values))


def remove(session: Session, host: str) -> None:
    """Delete one, if it is there."""
    session.execute(delete(table(LendRow)).where(LendRow.host == host))


def lend_of(row: LendRow) -> Lend:
    """Return the row as a value of the domain."""
    return Lend(row.host, row.operation_id, row.mib, LenderKind(row.kind), LendStage(row.stage), row.reason)
