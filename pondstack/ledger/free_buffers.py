"""What the ledger keeps of the pools' free buffers: their sizes, the starts that missed them, and what sizes them.

The sizes are in the pools' rows, so that a new leader, a stand-by and the API have the same ones. What they are made
from is in the journal, and is read back from there.
"""

from dataclasses import replace

from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.requests import AssignRequest
from pondstack.ledger.store import Recent, Transaction
from pondstack.ledger.transactions import Transactions

MISS = "buffer_miss"
"""The operation by which a start that found too few free slices is counted, under the id of its assign."""


class FreeBuffers:
    """The free buffers of all pools."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def recent(self, after: int | None, seconds: float) -> Recent:
        """Return the operations after a sequence of the journal, None: those of the last `seconds`."""
        return self._transactions.read(lambda tx: self._store.journal.recent(tx, after, seconds))

    def resize(self, pool_uuid: str, size: FreeBuffer) -> None:
        """Write a size down; the misses counted so far stay. A pool that was removed meanwhile is left out."""

        def work(tx: Transaction) -> None:
            before = self._store.pools.free_buffer(tx, pool_uuid)
            if before is None:
                return
            self._put(tx, pool_uuid, replace(size, misses=before.misses))
            if before.slices != size.slices:
                effect = {"pool_uuid": pool_uuid, "before": before.slices, **size.to_record()}
                self._transactions.note(tx, "resize_buffer", {"pool_uuid": pool_uuid}, effect)

        self._transactions.write(work)

    def miss(self, operation_id: str, request: AssignRequest, slices: int) -> None:
        """Count a start that was admitted and found fewer free slices than it asks for; once, however often it asks."""

        def work(tx: Transaction) -> dict[str, object]:
            before = self._store.pools.free_buffer(tx, request.pool_uuid)
            if before is not None:
                self._put(tx, request.pool_uuid, replace(before, misses=before.misses + 1))
            return {"pool_uuid": request.pool_uuid, "slices": slices}

        self._transactions.once(operation_id, MISS, request.fields(), work)

    def _put(self, tx: Transaction, pool_uuid: str, size: FreeBuffer) -> None:
        self._store.pools.change(tx, pool_uuid, {"free_buffer": size.to_record()})
