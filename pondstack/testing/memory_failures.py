"""What a MemoryLedger writes when a pool device or a host fails; what pondstack.db.failures is in SQL."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from pondstack.db.failures import MEMORY_FAILED, QUARANTINE, TOLD, MemoryFailed
from pondstack.db.moves import MOVES
from pondstack.domain.states import HOST_FENCED, OWNED, SliceEvent, SliceState
from pondstack.testing import memory_pools as pools
from pondstack.testing import memory_slices as slices
from pondstack.testing.memory_store import MemoryStore, Transaction


class MemoryFailures:
    """Methods of the MemoryLedger."""

    database: MemoryStore
    epoch: int
    _down: float

    def _once(
        self, operation_id: str, kind: str, arguments: dict[str, Any], work: Callable[[Transaction], dict[str, Any]]
    ) -> dict[str, Any]:
        raise NotImplementedError

    def fail_allocation(self, allocation_uuid: str, failure: int, reason: str, *, tell: bool) -> int:
        """Set an allocation aside because its device failed; as Failures.fail_allocation."""
        operation_id = str(uuid5(NAMESPACE_OID, f"pondstack failure {failure} of allocation {allocation_uuid}"))

        def work(tx: Transaction) -> dict[str, Any]:
            mine = slices.of_allocation(tx, allocation_uuid)
            held = [item for item in mine if item.state in OWNED]
            aside = [
                replace(item, reason=reason, epoch=self.epoch) for item in mine if item.state is SliceState.QUARANTINED
            ]
            moves = slices.move(tx, held, SliceEvent.QUARANTINE, epoch=self.epoch, reason=reason)
            moves += slices.move(tx, aside, epoch=self.epoch)
            event = _event(tx, allocation_uuid, reason) if tell else None
            return {"slices": [item.index for item in held + aside], "event": event, MOVES: moves}

        arguments = {"allocation_uuid": allocation_uuid, "failure": failure}
        return len(self._once(operation_id, MEMORY_FAILED if tell else QUARANTINE, arguments, work)["slices"])

    def untold(self) -> list[MemoryFailed]:
        """Return what nobody was told yet, the oldest first."""

        def work(tx: Transaction) -> list[MemoryFailed]:
            told = {operation_id for operation_id, kind in tx.tables.operations if kind == TOLD}
            rows = [row for row in tx.tables.operations.values() if row.kind == MEMORY_FAILED and row.effect["event"]]
            return [
                MemoryFailed(uuid=row.operation_id, detected_at=row.created_at, **row.effect["event"])
                for row in sorted(rows, key=lambda row: row.sequence)
                if row.operation_id not in told
            ]

        return self.database.read(work)

    def told(self, event: MemoryFailed) -> None:
        """Note that somebody was told."""
        self._once(event.uuid, TOLD, {}, lambda _tx: {MOVES: []})

    def fence_host(self, name: str, reason: str, *, force: bool, operation_id: str | None = None) -> int:
        """An operator says that a host is dead; as Failures.fence_host."""

        def work(tx: Transaction) -> dict[str, Any]:
            pools.fence_host(tx, name, reason, None if force else self._down)
            held = [item for item in slices.of_host(tx, name) if item.state in OWNED]
            why = f"{HOST_FENCED}: {reason}"
            moves = slices.move(tx, held, SliceEvent.QUARANTINE, epoch=self.epoch, reason=why)
            return {"slices": [item.index for item in held], MOVES: moves}

        arguments = {"name": name, "reason": reason, "force": force}
        return len(self._once(operation_id or str(uuid4()), "fence_host", arguments, work)["slices"])

    def unfence_host(self, name: str, operation_id: str | None = None) -> None:
        """Let a host take part again; as Failures.unfence_host."""

        def work(tx: Transaction) -> dict[str, Any]:
            pools.unfence_host(tx, name)
            return {MOVES: []}

        self._once(operation_id or str(uuid4()), "unfence_host", {"name": name}, work)


def _event(tx: Transaction, allocation_uuid: str, reason: str) -> dict[str, Any] | None:
    row = tx.tables.allocations.get(allocation_uuid)
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
        "reason": reason,
    }
