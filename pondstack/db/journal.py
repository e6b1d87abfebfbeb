"""The journal: each (operation id, kind) takes effect once; asking again gets the first answer."""

import hashlib
import json
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from pondstack.db.clock import now_seconds
from pondstack.db.models import OperationRow, table
from pondstack.domain.errors import OperationMismatch


def fingerprint(arguments: dict[str, Any]) -> str:
    """Return a digest of a request, so that a reused operation id is noticed."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def recall(session: Session, operation_id: str, kind: str, digest: str) -> dict[str, Any] | None:
    """Return the effect that the operation had, None when it has not happened; raises OperationMismatch."""
    row = session.execute(
        select(OperationRow.fingerprint, OperationRow.effect).where(
            OperationRow.operation_id == operation_id, OperationRow.kind == kind
        )
    ).one_or_none()
    if row is None:
        return None
    if row.fingerprint != digest:
        raise OperationMismatch(
            f"operation {operation_id} ({kind}) was already used for another request; make a new id"
        )
    return dict(row.effect)


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


def prune(session: Session, keep_seconds: float) -> int:
    """Forget operations that are older than `keep_seconds`, the newest one excepted; returns how many."""
    newest = session.execute(select(func.max(OperationRow.sequence))).scalar()
    if newest is None:
        return 0
    gone = session.execute(
        delete(OperationRow).where(
            OperationRow.created_at < now_seconds() - keep_seconds, OperationRow.sequence < newest
        ),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(gone, CursorResult)
    return gone.rowcount
