"""Taking the lead in a test, without an election."""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from pondstack.db.clock import now_seconds
from pondstack.db.engine import Database
from pondstack.db.leadership import ROW
from pondstack.db.models import Leadership
from pondstack.ha.lease import Terms


def take_over(database: Database, holder: str, lease_seconds: float = Terms().lease_seconds) -> int:
    """Start the next epoch for `holder`, whether the lease is over or not; returns the epoch."""

    def work(session: Session) -> int:
        # The row's lock first: of two that take over at once the second must see the first one's epoch.
        session.execute(
            update(Leadership)
            .where(Leadership.id == ROW)
            .values(
                epoch=Leadership.epoch + 1,
                holder=holder,
                successor="",
                renewed_at=now_seconds(),
                expires_at=now_seconds() + lease_seconds,
            ),
            execution_options={"synchronize_session": False},
        )
        return session.execute(select(Leadership.epoch).where(Leadership.id == ROW)).scalar_one()

    return database.write(work)
