"""The journal in a MemoryStore; what pondstack.db.journal is in SQL."""

from typing import Any

from pondstack.domain.errors import OperationMismatch
from pondstack.testing.memory_store import OperationRow, Transaction


def recall(tx: Transaction, operation_id: str, kind: str, digest: str) -> dict[str, Any] | None:
    """Return the effect that the operation had, None when it has not happened; raises OperationMismatch."""
    row = tx.tables.operations.get((operation_id, kind))
    if row is None:
        return None
    if row.fingerprint != digest:
        raise OperationMismatch(f"operation {operation_id} ({kind}) was already used for another request")
    return dict(row.effect)


def record(tx: Transaction, operation_id: str, kind: str, digest: str, epoch: int, effect: dict[str, Any]) -> None:
    """Write down what an operation did, in the same transaction."""
    row = OperationRow(tx.next_sequence(), operation_id, kind, digest, epoch, effect, tx.now())
    tx.put(tx.tables.operations, (operation_id, kind), row)


def unanswered(tx: Transaction, kind: str, answer: str) -> list[tuple[str, dict[str, Any], float]]:
    """Return id, effect and moment of the operations of a `kind` that no `answer` of the same id followed, in order."""
    rows = tx.tables.operations
    found = [row for row in rows.values() if row.kind == kind and (row.operation_id, answer) not in rows]
    return [(row.operation_id, row.effect, row.created_at) for row in sorted(found, key=lambda row: row.sequence)]


def prune(tx: Transaction, keep_seconds: float) -> int:
    """Forget operations that are older than `keep_seconds`, the newest one excepted; returns how many."""
    rows, limit = tx.tables.operations, tx.now() - keep_seconds
    newest = max((row.sequence for row in rows.values()), default=0)
    old = [key for key, row in rows.items() if row.created_at < limit and row.sequence < newest]
    for key in old:
        tx.delete(rows, key)
    return len(old)
