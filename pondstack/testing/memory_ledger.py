"""The ledger without SQL: the very Ledger over tables in this process, some hundred times as fast.

It passes the contract tests of pondstack/tests/db too.
"""

from typing import Any

from pondstack.db.ledger import Ledger
from pondstack.db.tables import Tables
from pondstack.testing import (
    memory_allocations,
    memory_buffers,
    memory_journal,
    memory_pools,
    memory_slices,
    memory_splits,
)
from pondstack.testing.memory_lease import check_epoch
from pondstack.testing.memory_store import MemoryStore

MEMORY = Tables(
    memory_allocations,
    memory_buffers,
    check_epoch,
    memory_journal,
    memory_pools,
    memory_slices,
    memory_splits,
)


class MemoryLedger(Ledger):
    """A Ledger whose database is a MemoryStore."""

    def __init__(self, database: MemoryStore, epoch: int, *arguments: Any, **named: Any) -> None:
        super().__init__(database, epoch, *arguments, tables=MEMORY, **named)  # type: ignore[arg-type]
