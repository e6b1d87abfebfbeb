"""Tables in this process for a ledger without SQL: transactions that happen wholly or not at all. Thread-safe.

Behind pondstack.testing.memory_ledger; what it keeps is lost with the process, as a test wants it.
"""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pondstack.domain.lending import Buffer, Lender, RemoteAllocation
from pondstack.domain.model import Extent, Slice
from pondstack.domain.sizing import Split

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LeadershipRow:
    """Who may write; times are the store's clock, in seconds."""

    epoch: int = 0
    holder: str = ""
    renewed_at: float = 0.0
    expires_at: float = 0.0
    successor: str = ""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """One pool device."""

    uuid: str
    name: str
    serial: str
    driver: str
    address: dict[str, Any]
    slice_mib: int
    slices_total: int
    created_at: float
    state: str = "up"
    generation: int = 0


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host with its newest report."""

    name: str
    created_at: float
    last_heartbeat: float
    enabled: bool = True
    disabled_reason: str = ""
    generation: int = 0
    provider_uuid: str | None = None
    agent_version: str = ""
    agent_epoch: int = 0
    sequence: int = 0
    attached: tuple[Any, ...] = ()
    stuck: dict[str, str] = field(default_factory=dict)
    tiering: dict[str, Any] = field(default_factory=dict)
    lending: dict[str, Any] | None = None
    borrowed: dict[str, Any] | None = None
    pools: frozenset[str] = frozenset()
    fenced_at: float | None = None
    fenced_reason: str = ""


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One slice and when it changed."""

    item: Slice
    changed_at: float


@dataclass(frozen=True, slots=True)
class AllocationRow:
    """Pool memory of one consumer on one host."""

    uuid: str
    consumer_uuid: str
    host: str
    pool_uuid: str
    extents: tuple[Extent, ...]
    pool_mib: int
    guest_mib: int
    project_id: str
    user_id: str
    operation_id: str
    created_at: float
    generation: int = 0
    unclaimed_since: float | None = None


@dataclass(frozen=True, slots=True)
class BufferRow:
    """One buffer and when it changed; kind and size are its lender's."""

    item: Buffer
    changed_at: float


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One line of the journal."""

    sequence: int
    operation_id: str
    kind: str
    fingerprint: str
    epoch: int
    effect: dict[str, Any]
    created_at: float


@dataclass(frozen=True, slots=True)
class SplitRow:
    """The split decided for an instance."""

    flavor_key: str
    split: Split
    created_at: float


@dataclass(slots=True)
class Rows:
    """All rows by key; `sequence`: the newest number that the journal gave out."""

    leadership: dict[int, LeadershipRow] = field(default_factory=lambda: {1: LeadershipRow()})
    pools: dict[str, PoolRow] = field(default_factory=dict)
    hosts: dict[str, HostRow] = field(default_factory=dict)
    slices: dict[tuple[str, int], SliceRow] = field(default_factory=dict)
    allocations: dict[str, AllocationRow] = field(default_factory=dict)
    lenders: dict[str, Lender] = field(default_factory=dict)
    buffers: dict[tuple[str, int], BufferRow] = field(default_factory=dict)
    remote_allocations: dict[str, RemoteAllocation] = field(default_factory=dict)
    operations: dict[tuple[str, str], OperationRow] = field(default_factory=dict)
    splits: dict[str, SplitRow] = field(default_factory=dict)
    controllers: dict[str, Any] = field(default_factory=dict)
    sequence: int = 0


class Transaction:
    """What one piece of work sees and changes. Rows are never changed in place, so undoing is putting back."""

    def __init__(self, tables: Rows, now: Callable[[], float]) -> None:
        self.tables = tables
        self.now = now
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        """Insert or replace a row."""
        self._undo.append((table, key, table.get(key)))
        table[key] = row

    def delete(self, table: dict[Any, Any], key: Any) -> None:
        """Delete a row that is there."""
        self._undo.append((table, key, table.pop(key)))

    def next_sequence(self) -> int:
        """Return the next number of the journal; a rolled-back one is lost, as in SQL."""
        self.tables.sequence += 1
        return self.tables.sequence

    def rollback(self) -> None:
        """Take everything back."""
        for table, key, row in reversed(self._undo):
            if row is None:
                table.pop(key, None)
            else:
                table[key] = row
        self._undo.clear()

    def touched(self, table: dict[Any, Any]) -> bool:
        """Return whether rows of a table were written."""
        return any(entry[0] is table for entry in self._undo)


class MemoryStore:
    """One store. `clock` is its clock, in seconds, which alone judges ages and leases."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.tables = Rows()
        self._lock = threading.RLock()

    def write(self, work: Callable[[Transaction], T], turn: AbstractContextManager[Any] | None = None) -> T:
        """Run `work` and keep all that it changed, or nothing when it raises; `turn` is held meanwhile."""
        with turn or nullcontext(), self._lock:
            transaction = Transaction(self.tables, self.clock)
            try:
                answer = work(transaction)
            except BaseException:
                transaction.rollback()
                raise
            self.committed(transaction)
            return answer

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work`, which changes nothing, at one moment."""
        with self._lock:
            return work(Transaction(self.tables, self.clock))

    def committed(self, transaction: Transaction) -> None:
        """Be told of each commit; for whoever watches."""

    def ping(self) -> None:
        """Answer."""

    def dispose(self) -> None:
        """Nothing to close."""
