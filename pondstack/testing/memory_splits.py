"""The remembered splits in a MemoryStore; what pondstack.db.splits writes in SQL."""

from pondstack.domain.sizing import Split
from pondstack.testing.memory_store import SplitRow, Transaction


def remember(tx: Transaction, instance_uuid: str, flavor_key: str, split: Split) -> None:
    """Keep the split, in place of an older one."""
    tx.put(tx.tables.splits, instance_uuid, SplitRow(flavor_key, split, tx.now()))


def prune(tx: Transaction, keep_seconds: float) -> None:
    """Forget old splits of instances that hold no pool memory."""
    rows, limit = tx.tables.splits, tx.now() - keep_seconds
    holders = {row.consumer_uuid for row in tx.tables.allocations.values()}
    for uuid in [uuid for uuid, row in rows.items() if row.created_at < limit and uuid not in holders]:
        tx.delete(rows, uuid)
