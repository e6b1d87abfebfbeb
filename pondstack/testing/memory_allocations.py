"""Allocations in a MemoryStore; what pondstack.db.allocations is in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pondstack.domain.model import Extent
from pondstack.testing.memory_store import AllocationRow, Transaction


def insert(
    tx: Transaction,
    uuid: str,
    operation_id: str,
    pool_uuid: str,
    extents: Sequence[Mapping[str, int]],
    asked: Mapping[str, Any],
) -> None:
    """Add an allocation; `asked` is what the request says of consumer, host and sizes."""
    row = AllocationRow(
        uuid=uuid,
        pool_uuid=pool_uuid,
        extents=tuple(Extent(**extent) for extent in extents),
        operation_id=operation_id,
        created_at=tx.now(),
        **asked,
    )
    tx.put(tx.tables.allocations, uuid, row)


def host_of(tx: Transaction, uuid: str) -> str | None:
    """Return whose an allocation is, None when there is none."""
    row = tx.tables.allocations.get(uuid)
    return None if row is None else row.host


def bump(tx: Transaction, uuid: str) -> None:
    """Count a change of an allocation."""
    row = tx.tables.allocations[uuid]
    tx.put(tx.tables.allocations, uuid, replace(row, generation=row.generation + 1))


def facts(tx: Transaction, uuid: str) -> dict[str, Any] | None:
    """Return what others are told of an allocation, None when there is none."""
    row = tx.tables.allocations.get(uuid)
    if row is None:
        return None
    return {
        "allocation_uuid": row.uuid,
        "instance_uuid": row.consumer_uuid,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "host": row.host,
        "pool_uuid": row.pool_uuid,
        "pool_name": tx.tables.pools[row.pool_uuid].name,
        "pool_mib": row.pool_mib,
        "guest_mib": row.guest_mib,
    }


def mark_claims(tx: Transaction, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
    """Note which allocations Placement backs with a claim; an unclaimed one keeps the moment of its first note."""
    rows = tx.tables.allocations
    for uuid in claimed:
        if uuid in rows and rows[uuid].unclaimed_since is not None:
            tx.put(rows, uuid, replace(rows[uuid], unclaimed_since=None))
    for uuid in unclaimed:
        if uuid in rows and rows[uuid].unclaimed_since is None:
            tx.put(rows, uuid, replace(rows[uuid], unclaimed_since=tx.now()))


def drop_empty(tx: Transaction, uuids: Iterable[str]) -> None:
    """Delete those of the allocations that no slice points at any more."""
    held = {row.item.allocation_uuid for row in tx.tables.slices.values()}
    for uuid in sorted(uuids):
        if uuid in tx.tables.allocations and uuid not in held:
            tx.delete(tx.tables.allocations, uuid)
