"""The leadership row: who may write. Its epoch only grows, by compare-and-swap; it fences every transaction."""

from sqlalchemy import select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.clock import now_seconds
from pondstack.db.engine import Database
from pondstack.db.models import Leadership, table
from pondstack.domain.errors import NotLeader

ROW = 1


def check_epoch(session: Session, epoch: int) -> None:
    """Be the first statement of every transaction of the ledger; raises NotLeader when somebody took a newer epoch.

    It writes, so that it holds the row until the commit: whoever takes the next epoch waits for this transaction or
    makes it fail, on one server and on Galera alike. It also puts the writers in one order, which is the journal's.
    """
    changed = session.execute(
        update(table(Leadership))
        .where(Leadership.id == ROW, Leadership.epoch == epoch)
        .values(renewed_at=now_seconds())
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount != 1:
        raise NotLeader(f"this controller's epoch {epoch} has ended: another one leads; call that one, stop this one")


class SqlLeadership:
    """The leadership row as pondstack.ha.lease needs it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_epoch(self) -> int:
        """Return the present epoch."""
        return self._database.read(_read_epoch)

    def compare_and_take(self, expected: int, holder: str) -> bool:
        """Set epoch = expected + 1 and the holder if the epoch is still `expected`; returns whether it was.

        True also when an earlier try of this very call had done it before its connection was lost.
        """
        return self._database.write(lambda session: _compare_and_take(session, expected, holder))


def _read_epoch(session: Session) -> int:
    return session.execute(select(Leadership.epoch).where(Leadership.id == ROW)).scalar_one()


def _compare_and_take(session: Session, expected: int, holder: str) -> bool:
    changed = session.execute(
        update(Leadership)
        .where(Leadership.id == ROW, Leadership.epoch == expected)
        .values(epoch=expected + 1, holder=holder, renewed_at=now_seconds()),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount == 1:
        return True
    row = session.execute(select(Leadership.epoch, Leadership.holder).where(Leadership.id == ROW)).one()
    return bool(row.epoch == expected + 1 and row.holder == holder)
