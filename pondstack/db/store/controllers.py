"""The controllers that take part, in SQL. Each writes its own row; no fence is needed, nothing is decided by them."""

from typing import Any

from sqlalchemy import Float, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import ControllerRow, Leadership, table
from pondstack.db.store import journal
from pondstack.db.store.leadership import ROW
from pondstack.ledger.records import ControllerView

LEADER, STANDBY, DOWN = "leader", "standby", "down"
FORGET_SECONDS = 7 * 24 * 3600.0
"""A controller that was silent for so long is gone for good."""

# Made once: every controller runs them once a second.
_C = table(ControllerRow).c
_HOLDER = select(_C.holder).where(_C.name == bindparam("own_name"))
_SAY = (
    update(table(ControllerRow))
    .where(_C.name == bindparam("own_name"))
    .values(seen_at=now_seconds(), reached_at=now_seconds() - bindparam("reached_seconds", type_=Float(53)))
)


def record(
    session: Session,
    name: str,
    holder: str,
    *,
    role: str,
    epoch: int,
    followed_sequence: int,
    reached_seconds: float | None = None,
) -> str:
    """Write down what a controller says of itself; returns the holder that the row named before, "" for none.

    `epoch` 0 leaves the last one that it led with. `reached_seconds`: how long ago it reached itself through the
    message broker, None: not in this life.
    """
    values: dict[str, Any] = {"holder": holder, "role": role, "followed_sequence": followed_sequence}
    values["heirs_holder"] = holder
    if epoch:
        values["epoch"] = epoch
    before = session.execute(_HOLDER, {"own_name": name}).scalar()
    if before is None:
        _forget(session)
        first = {"epoch": epoch, "seen_at": now_seconds(), "started_at": now_seconds()}
        session.execute(insert(table(ControllerRow)).values({"name": name, **values, **first}))
    # Of a controller that has not reached itself yet, `reached_at` becomes NULL by this arithmetic.
    session.execute(_SAY, {"own_name": name, "reached_seconds": reached_seconds, **values})
    if before and before != holder:
        again = update(table(ControllerRow)).where(ControllerRow.name == name)
        session.execute(again.values(started_at=now_seconds()))
    return before or ""


def deregister(session: Session, name: str, holder: str) -> None:
    """A controller stops: its row says so at once, unless another life of it has come up already."""
    session.execute(
        update(table(ControllerRow))
        .where(ControllerRow.name == name, ControllerRow.holder == holder)
        .values(role=DOWN, seen_at=now_seconds())
    )


def _forget(session: Session) -> None:
    """Drop the rows of controllers that are gone for good; done whenever a new one comes."""
    session.execute(delete(table(ControllerRow)).where(ControllerRow.seen_at < now_seconds() - FORGET_SECONDS))


def views(session: Session, down_seconds: float) -> list[ControllerView]:
    """Return all controllers by name. Who leads is the lease's word, who is down that of the clock or its own."""
    newest = journal.newest(session)
    lease = session.execute(
        select(Leadership.epoch, Leadership.holder, (Leadership.expires_at - now_seconds()).label("remaining")).where(
            Leadership.id == ROW
        )
    ).one()
    rows = session.execute(
        select(ControllerRow, now_seconds() - ControllerRow.seen_at, now_seconds() - ControllerRow.reached_at).order_by(
            ControllerRow.name
        )
    ).all()
    return [
        _view(
            row,
            max(0.0, age),
            None if reached is None else max(0.0, reached),
            lease.epoch if lease.remaining > 0 and lease.holder == row.holder else 0,
            newest,
            down_seconds,
        )
        for row, age, reached in rows
    ]


def _view(
    row: ControllerRow,
    seen_seconds: float,
    reached_seconds: float | None,
    leads: int,
    newest: int,
    down_seconds: float,
) -> ControllerView:
    """`leads`: the epoch that the controller leads with, 0: it does not."""
    role = STANDBY
    if leads:
        role = LEADER
    elif row.role != STANDBY or seen_seconds > down_seconds:
        # One that still calls itself the leader has not noticed the end of its lease: it was killed, or is paused.
        role = DOWN
    followed = newest if leads else row.followed_sequence
    return ControllerView(
        name=row.name,
        holder=row.holder,
        role=role,
        epoch=leads or row.epoch,
        started_at=row.started_at,
        seen_seconds=seen_seconds,
        followed_sequence=followed,
        lag=max(0, newest - followed),
        reached_seconds=reached_seconds,
    )
