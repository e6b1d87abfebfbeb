"""The journal: each (operation id, kind) takes effect once; asking again gets the first answer.

It is also what a stand-by follows. All writers hold the leadership row until they commit, so sequences are committed in
their order: whoever has read one has read all before it.
"""

from typing import Any

from sqlalchemy import delete, exists, func, insert, select
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session, aliased

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import OperationRow, table
from pondstack.ledger.moves import REMOVE_POOL
from pondstack.ledger.store import Entry, Recent


def recall(session: Session, operation_id: str, kind: str) -> tuple[str, dict[str, Any]] | None:
    """Return the fingerprint of an operation's request and the effect that it had, None when it has not happened."""
    row = session.execute(
        select(OperationRow.fingerprint, OperationRow.effect).where(
            OperationRow.operation_id == operation_id, OperationRow.kind == kind
        )
    ).one_or_none()
    return None if row is None else (row.fingerprint, dict(row.effect))


def record(session: Session, operation_id: str, kind: str, digest: str, epoch: int, effect: dict[str, Any]) -> None:
    """Write down what an operation did, in the same transaction."""
    session.execute(
        insert(table(OperationRow)).values(
            operation_id=operation_id,
            kind=kind,
            fingerprint=digest,
            epoch=epoch,
            effect=effect,
            created_at=now_seconds(),
        )
    )


def pending(session: Session, kind: str, answer: str) -> list[tuple[str, dict[str, Any], float]]:
    """Return id, effect and moment of the operations of a `kind` that no `answer` of the same id followed, in order."""
    other = aliased(OperationRow)
    query = (
        select(OperationRow.operation_id, OperationRow.effect, OperationRow.created_at)
        .where(
            OperationRow.kind == kind,
            ~exists().where(other.operation_id == OperationRow.operation_id, other.kind == answer),
        )
        .order_by(OperationRow.sequence)
    )
    return [(row.operation_id, row.effect, row.created_at) for row in session.execute(query)]


def of_kind(session: Session, kind: str) -> list[dict[str, Any]]:
    """Return the effects of the operations of a kind, in order."""
    query = select(OperationRow.effect).where(OperationRow.kind == kind).order_by(OperationRow.sequence)
    return [dict(effect) for effect in session.execute(query).scalars()]


def after(session: Session, sequence: int, limit: int) -> list[OperationRow]:
    """Return the operations that follow a sequence, at most `limit` of them, in order."""
    query = select(OperationRow).where(OperationRow.sequence > sequence).order_by(OperationRow.sequence).limit(limit)
    return list(session.execute(query).scalars())


def recent(session: Session, sequence: int | None, seconds: float) -> Recent:
    """Return the operations that follow a sequence, None: those of the last `seconds`, in order."""
    now = session.execute(select(now_seconds())).scalar_one()
    follows = OperationRow.created_at >= now - seconds if sequence is None else OperationRow.sequence > sequence
    rows = list(session.execute(select(OperationRow).where(follows).order_by(OperationRow.sequence)).scalars())
    entries = [Entry(row.operation_id, row.kind, dict(row.effect), row.created_at) for row in rows]
    last = rows[-1].sequence if rows else newest(session) if sequence is None else sequence
    return Recent(entries, last, now)


def newest(session: Session) -> int:
    """Return the newest sequence, 0 before the first operation."""
    return session.execute(select(func.max(OperationRow.sequence))).scalar() or 0


def continues(session: Session, sequence: int) -> bool:
    """Return whether nothing that follows `sequence` was pruned: it is still there itself, or is the start."""
    if sequence == 0:
        return True
    kind = session.execute(select(OperationRow.kind).where(OperationRow.sequence == sequence)).scalar()
    # An operation that is kept for good tells nothing of those that follow it, unless none does.
    return kind is not None and (kind != REMOVE_POOL or sequence == newest(session))


def prune(session: Session, keep_seconds: float) -> int:
    """Forget operations that are older than `keep_seconds`, but the newest and removals of pools; returns how many."""
    newest = session.execute(select(func.max(OperationRow.sequence))).scalar()
    if newest is None:
        return 0
    gone = session.execute(
        delete(OperationRow).where(
            OperationRow.created_at < now_seconds() - keep_seconds,
            OperationRow.sequence < newest,
            OperationRow.kind != REMOVE_POOL,
        ),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(gone, CursorResult)
    return gone.rowcount
