"""The store's interface: rows, and no rules. Each function is called inside one transaction, which comes first.

pondstack.ledger says when they are called and why; pondstack.db.store keeps the rows in SQL, tests.fixtures.memory in
the process, for the simulation. Times are by the store's clock. What the functions do and raise is told where SQL has
them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pondstack.domain.admission import Lend
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.host_slices import Holding, HoldingKey
from pondstack.domain.lending import Buffer, Lender, RemoteAllocation
from pondstack.domain.model import PoolState, Slice
from pondstack.domain.purpose import Purpose
from pondstack.domain.sizing import Split
from pondstack.ledger.moves import Change

Transaction = Any
"""A Session of SQLAlchemy, or what another store has in its place."""


class CompareAndSetLost(Exception):
    """A row is not any more as the transaction read it: another one was quicker; the transaction starts again."""


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """What the rules need of a pool's row."""

    uuid: str
    name: str
    slice_mib: int
    slices_total: int
    state: PoolState


@dataclass(frozen=True, slots=True)
class HostEntry:
    """What the rules need of a host's row. `silent_seconds`: since its agent was heard of.

    `fenced`: why it is fenced, None: it is not; `reported_since_fenced`: whether its agent was heard of after that.
    `tiering_on`: whether its kernel is to tier, None: as its agent is configured.
    """

    name: str
    enabled: bool
    disabled_reason: str
    generation: int
    sequence: int
    silent_seconds: float
    attached: tuple[Mapping[str, Any], ...] = field(default=())
    fenced: str | None = None
    reported_since_fenced: bool = True
    tiering_on: bool | None = None


class Reach(NamedTuple):
    """A pool, a host and whether the host reaches the pool; None: there is no such row."""

    pool: PoolEntry | None
    host: HostEntry | None
    reached: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation of the journal; `at` in seconds of the store's clock."""

    operation_id: str
    kind: str
    effect: dict[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class Recent:
    """A stretch of the journal, in order: the last operation's sequence (of all, if there is none), and the moment."""

    entries: Sequence[Entry]
    sequence: int
    now: float


class Allocations(Protocol):
    """As pondstack.db.store.allocations."""

    def insert(
        self,
        tx: Transaction,
        uuid: str,
        operation_id: str,
        pool_uuid: str,
        extents: Sequence[Mapping[str, int]],
        asked: Mapping[str, Any],
        /,
    ) -> None: ...
    def host_of(self, tx: Transaction, uuid: str, /) -> str | None: ...
    def bump(self, tx: Transaction, uuid: str, /) -> None: ...
    def on_node(self, tx: Transaction, pool_uuid: str, host: str, /) -> dict[str, Purpose]: ...
    def on_host(self, tx: Transaction, host: str, purpose: Purpose, /) -> list[str]: ...
    def facts(self, tx: Transaction, uuid: str, /) -> dict[str, Any] | None: ...
    def unclaimed_seconds(self, tx: Transaction, uuid: str, /) -> float | None: ...
    def mark_claims(self, tx: Transaction, claimed: Sequence[str], unclaimed: Sequence[str], /) -> None: ...
    def drop_empty(self, tx: Transaction, uuids: Iterable[str], /) -> None: ...


class Journal(Protocol):
    """As pondstack.db.store.journal."""

    def recall(self, tx: Transaction, operation_id: str, kind: str, /) -> tuple[str, dict[str, Any]] | None: ...
    def record(
        self, tx: Transaction, operation_id: str, kind: str, digest: str, epoch: int, effect: dict[str, Any], /
    ) -> None: ...
    def pending(self, tx: Transaction, kind: str, answer: str, /) -> list[tuple[str, dict[str, Any], float]]: ...
    def of_kind(self, tx: Transaction, kind: str, /) -> list[dict[str, Any]]: ...
    def recent(self, tx: Transaction, after: int | None, seconds: float, /) -> Recent: ...
    def prune(self, tx: Transaction, keep_seconds: float, /) -> int: ...


class Pools(Protocol):
    """As pondstack.db.store.pools."""

    def get(self, tx: Transaction, uuid: str, /) -> PoolEntry | None: ...
    def named(self, tx: Transaction, name: str, /) -> str | None: ...
    def add(self, tx: Transaction, uuid: str, serial: str, slice_mib: int, values: Mapping[str, Any], /) -> None: ...
    def free_buffer(self, tx: Transaction, uuid: str, /) -> FreeBuffer | None: ...
    def change(self, tx: Transaction, uuid: str, values: Mapping[str, Any], /) -> None: ...
    def change_state(self, tx: Transaction, uuid: str, state: PoolState, /) -> None: ...
    def reach(self, tx: Transaction, uuid: str, host: str, /) -> Reach: ...
    def remove(self, tx: Transaction, uuid: str, /) -> None: ...


class Hosts(Protocol):
    """As pondstack.db.store.hosts."""

    def get(self, tx: Transaction, name: str, /) -> HostEntry | None: ...
    def report(self, tx: Transaction, name: str, values: Mapping[str, Any], /) -> None: ...
    def set_reach(self, tx: Transaction, name: str, pools: Iterable[str], /) -> bool: ...
    def change(self, tx: Transaction, name: str, values: Mapping[str, Any], /) -> None: ...
    def fence(self, tx: Transaction, name: str, reason: str, /) -> None: ...
    def unfence(self, tx: Transaction, name: str, /) -> None: ...
    def remove(self, tx: Transaction, name: str, /) -> None: ...


class Slices(Protocol):
    """As pondstack.db.store.slices."""

    def add(self, tx: Transaction, pool_uuid: str, indexes: range, /) -> None: ...
    def of_allocation(self, tx: Transaction, allocation_uuid: str, /) -> list[Slice]: ...
    def at(self, tx: Transaction, pool_uuid: str, indexes: Iterable[int], /) -> list[Slice]: ...
    def of_host(self, tx: Transaction, host: str, /) -> list[Slice]: ...
    def of_pool(self, tx: Transaction, pool_uuid: str, /) -> list[Slice]: ...
    def free_indexes(self, tx: Transaction, pool_uuid: str, /) -> list[int]: ...
    def swap(self, tx: Transaction, change: Change[Slice], /) -> None: ...


class Buffers(Protocol):
    """As pondstack.db.store.buffers."""

    def lender(self, tx: Transaction, host: str, /) -> Lender | None: ...
    def put_lender(self, tx: Transaction, item: Lender, /) -> None: ...
    def remove_lender(self, tx: Transaction, host: str, /) -> None: ...
    def add(self, tx: Transaction, items: Sequence[Buffer], /) -> None: ...
    def of_lender(self, tx: Transaction, host: str, /) -> list[Buffer]: ...
    def of_allocation(self, tx: Transaction, allocation_uuid: str, /) -> list[Buffer]: ...
    def of_borrower(self, tx: Transaction, host: str, /) -> list[Buffer]: ...
    def free(self, tx: Transaction, /) -> list[Buffer]: ...
    def unacknowledged(self, tx: Transaction, seconds: float, /) -> list[Buffer]: ...
    def everything(self, tx: Transaction, /) -> list[Buffer]: ...
    def borrowers(self, tx: Transaction, seconds: float, /) -> list[str]: ...
    def silent(self, tx: Transaction, seconds: float, /) -> set[str]: ...
    def swap(self, tx: Transaction, change: Change[Buffer], /) -> None: ...
    def mark(self, tx: Transaction, items: Iterable[Buffer], values: Mapping[str, Any], /) -> None: ...
    def renew(self, tx: Transaction, items: Iterable[Buffer], /) -> None: ...
    def remove(self, tx: Transaction, items: Iterable[Buffer], /) -> None: ...
    def add_allocation(self, tx: Transaction, uuid: str, operation_id: str, asked: Mapping[str, Any], /) -> None: ...
    def allocation(self, tx: Transaction, uuid: str, /) -> RemoteAllocation | None: ...
    def allocations(self, tx: Transaction, /) -> list[RemoteAllocation]: ...
    def unguaranteed(self, tx: Transaction, /) -> set[str]: ...
    def mark_claims(self, tx: Transaction, claimed: Sequence[str], unclaimed: Sequence[str], /) -> None: ...
    def drop_empty(self, tx: Transaction, uuids: Iterable[str], /) -> None: ...


@dataclass(frozen=True, slots=True)
class RememberedSplit:
    """What an instance of a flavor was placed with, `age_seconds` ago."""

    instance_uuid: str
    flavor_key: str
    split: Split
    age_seconds: float = 0.0


class Holdings(Protocol):
    """As pondstack.db.store.holdings."""

    def get(self, tx: Transaction, key: HoldingKey, /) -> Holding | None: ...
    def find(self, tx: Transaction, /) -> list[Holding]: ...
    def put(self, tx: Transaction, item: Holding, /) -> None: ...
    def remove(self, tx: Transaction, key: HoldingKey, /) -> None: ...


class Lends(Protocol):
    """As pondstack.db.store.lends."""

    def get(self, tx: Transaction, host: str, /) -> Lend | None: ...
    def find(self, tx: Transaction, /) -> list[Lend]: ...
    def put(self, tx: Transaction, item: Lend, /) -> None: ...
    def remove(self, tx: Transaction, host: str, /) -> None: ...


class Splits(Protocol):
    """As pondstack.db.store.splits."""

    def remember(self, tx: Transaction, item: RememberedSplit, /) -> None: ...
    def prune(self, tx: Transaction, keep_seconds: float, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Store:
    """All rows that a ledger reads and writes."""

    allocations: Allocations
    buffers: Buffers
    check_epoch: Callable[[Transaction, int, float], None]
    holdings: Holdings
    hosts: Hosts
    journal: Journal
    lends: Lends
    pools: Pools
    slices: Slices
    splits: Splits
