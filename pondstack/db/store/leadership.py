"""The leadership row: who may write, and until when. Its epoch only grows, by compare-and-swap.

Two rules, and they are apart. The epoch fences: each transaction of the ledger first touches the row on condition of
its own epoch, so that an old leader cannot commit, however late it comes. The end of the lease, by the database's
clock, says only when somebody else may stand.
"""

from typing import Any

from sqlalchemy import Float, Row, and_, bindparam, or_, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.connection.watch import Watch
from pondstack.db.models import Leadership, table
from pondstack.domain.errors import NotLeader
from pondstack.ha.lease import LONGEST_LEASE_SECONDS, Lease, Terms

ROW = 1
HANDED_OVER = 0.0
"""End of a lease that its holder gave up: nobody writes under its epoch any more."""

# Made once, and without the ORM: they run several times a second on every controller, and what they cost is the making.
_C = table(Leadership).c
_EXTEND = (
    update(table(Leadership))
    .where(_C.id == ROW, _C.epoch == bindparam("own_epoch"), _C.expires_at > HANDED_OVER)
    .values(renewed_at=now_seconds(), expires_at=now_seconds() + bindparam("lease_seconds", type_=Float(53)))
)
_LEASE = select(_C.epoch, _C.holder, _C.successor, (_C.expires_at - now_seconds()).label("remaining")).where(
    _C.id == ROW
)


def check_epoch(session: Session, epoch: int, lease_seconds: float = Terms().lease_seconds) -> None:
    """Be the first statement of every transaction of the ledger; raises NotLeader when the epoch is over.

    It writes, so that it holds the row until the commit: whoever takes the next epoch waits for this transaction or
    makes it fail, on one server and on Galera alike. It also puts the writers in one order, which is the journal's, and
    renews the lease. A lease that has run out and that nobody took is renewed too: the epoch is still the newest.
    """
    changed = session.execute(_EXTEND, {"own_epoch": epoch, "lease_seconds": lease_seconds})
    assert isinstance(changed, CursorResult)
    if changed.rowcount != 1:
        raise NotLeader(f"this controller's epoch {epoch} has ended; call again, the leader answers")


class SqlLeadership:
    """The leadership row as pondstack.ha.lease.LeaseStore.

    Give it a database of its own with a short retry time: a renewal that waits longer than a lease is worth nothing,
    and must not wait for a connection behind requests.
    """

    def __init__(self, database: Database, watch: Watch | None = None) -> None:
        """`watch`: what reads the row, for a controller that looks at it several times a second."""
        self._database = database
        self._watch = watch

    def read(self) -> Lease:
        """Return the row."""
        if self._watch is not None:
            return _lease(self._watch.one(_LEASE))
        return _lease(self._database.read(lambda session: session.execute(_LEASE).one()))

    def take(self, expected: int, holder: str, lease_seconds: float) -> bool:
        """Set epoch `expected` + 1, `holder` and a new end if the epoch is still `expected` and the lease is over."""
        return self._database.write(lambda session: _take(session, expected, holder, lease_seconds))

    def renew(self, epoch: int, lease_seconds: float) -> None:
        """Move the end of the lease away; raises NotLeader."""
        self._database.write(lambda session: check_epoch(session, epoch, lease_seconds))

    def hand_over(self, epoch: int, successor: str) -> None:
        """End the lease now, for the holder's own writes too; raises NotLeader."""
        self._database.write(lambda session: _hand_over(session, epoch, successor))


def _lease(row: Row[Any]) -> Lease:
    remaining = row.remaining if row.remaining <= LONGEST_LEASE_SECONDS else 0.0
    return Lease(row.epoch, row.holder, remaining, row.successor)


def _take(session: Session, expected: int, holder: str, lease_seconds: float) -> bool:
    changed = session.execute(
        update(table(Leadership))
        .where(
            and_(Leadership.id == ROW, Leadership.epoch == expected),
            # An end further away than any lease lasts was written before the database's clock was set back.
            or_(
                Leadership.expires_at <= now_seconds(),
                Leadership.expires_at > now_seconds() + LONGEST_LEASE_SECONDS,
            ),
        )
        .values(
            epoch=expected + 1,
            holder=holder,
            renewed_at=now_seconds(),
            expires_at=now_seconds() + lease_seconds,
            successor="",
        )
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount == 1:
        return True
    row = session.execute(select(Leadership.epoch, Leadership.holder).where(Leadership.id == ROW)).one()
    return bool(row.epoch == expected + 1 and row.holder == holder)


def _hand_over(session: Session, epoch: int, successor: str) -> None:
    changed = session.execute(
        update(table(Leadership))
        .where(Leadership.id == ROW, Leadership.epoch == epoch)
        .values(expires_at=HANDED_OVER, successor=successor)
    )
    assert isinstance(changed, CursorResult)
    if changed.rowcount != 1:
        raise NotLeader(f"this controller's epoch {epoch} has ended; there is nothing to hand over")
