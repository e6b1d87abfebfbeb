"""Where a ledger keeps its rows: modules of functions, each called inside one transaction, which comes first.

pondstack.ledger.ledger says when they are called and why; SQL is one set of them, tests.fixtures.memory.ledger brings
another, for the simulation. What the functions do and raise is told where SQL has them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pondstack.db.store import allocations, buffers, journal, pools, slices, splits
from pondstack.db.store.leadership import check_epoch
from pondstack.db.store.pools import Receipt
from pondstack.domain.causes import Cause
from pondstack.domain.lending import Buffer, Lender, RemoteAllocation
from pondstack.domain.model import Pool, PoolState, Slice
from pondstack.domain.sizing import Split
from pondstack.domain.states import SliceEvent

Transaction = Any
"""A Session of SQLAlchemy, or what another store has in its place."""
Moves = list[dict[str, Any]]
"""For the journal; see pondstack.ledger.slice_moves."""


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
    def facts(self, tx: Transaction, uuid: str, /) -> dict[str, Any] | None: ...
    def mark_claims(self, tx: Transaction, claimed: Sequence[str], unclaimed: Sequence[str], /) -> None: ...
    def drop_empty(self, tx: Transaction, uuids: Iterable[str], /) -> None: ...


class Journal(Protocol):
    """As pondstack.db.store.journal."""

    def recall(self, tx: Transaction, operation_id: str, kind: str, digest: str, /) -> dict[str, Any] | None: ...
    def record(
        self, tx: Transaction, operation_id: str, kind: str, digest: str, epoch: int, effect: dict[str, Any], /
    ) -> None: ...
    def unanswered(self, tx: Transaction, kind: str, answer: str, /) -> list[tuple[str, dict[str, Any], float]]: ...
    def prune(self, tx: Transaction, keep_seconds: float, /) -> int: ...


class Pools(Protocol):
    """As pondstack.db.store.pools."""

    def register_pool(
        self,
        tx: Transaction,
        /,
        *,
        uuid: str,
        name: str,
        serial: str,
        driver: str,
        address: Mapping[str, Any],
        slice_mib: int,
        slices_total: int,
    ) -> range: ...
    def set_pool_state(self, tx: Transaction, uuid: str, state: PoolState, /) -> bool: ...
    def usable_pool(self, tx: Transaction, uuid: str, name: str, /) -> Pool: ...
    def check_host(self, tx: Transaction, name: str, /) -> None: ...
    def write_report(self, tx: Transaction, report: Mapping[str, Any], down_seconds: float, /) -> Receipt: ...
    def set_host(self, tx: Transaction, name: str, enabled: bool, reason: str, generation: int | None, /) -> int: ...
    def fence_host(self, tx: Transaction, name: str, reason: str, down_seconds: float | None, /) -> None: ...
    def unfence_host(self, tx: Transaction, name: str, /) -> None: ...
    def is_fenced(self, tx: Transaction, name: str, /) -> bool: ...
    def set_provider(self, tx: Transaction, name: str, provider_uuid: str, /) -> None: ...


class Slices(Protocol):
    """As pondstack.db.store.slices."""

    def of_allocation(self, tx: Transaction, allocation_uuid: str, /) -> list[Slice]: ...
    def at(self, tx: Transaction, pool_uuid: str, indexes: Iterable[int], /) -> list[Slice]: ...
    def of_host(self, tx: Transaction, host: str, /) -> list[Slice]: ...
    def free_indexes(self, tx: Transaction, pool_uuid: str, /) -> list[int]: ...
    def move(
        self,
        tx: Transaction,
        items: Sequence[Slice],
        /,
        *events: SliceEvent,
        epoch: int,
        host: str | None = None,
        allocation_uuid: str | None = None,
        reason: str = "",
        cause: Cause | None = None,
        failure: int | None = None,
    ) -> Moves: ...


class Buffers(Protocol):
    """As pondstack.db.store.buffers."""

    def lender(self, tx: Transaction, host: str, /) -> Lender | None: ...
    def put_lender(self, tx: Transaction, item: Lender, /) -> None: ...
    def add(self, tx: Transaction, items: Sequence[Buffer], /) -> None: ...
    def of_lender(self, tx: Transaction, host: str, /) -> list[Buffer]: ...
    def of_allocation(self, tx: Transaction, allocation_uuid: str, /) -> list[Buffer]: ...
    def of_borrower(self, tx: Transaction, host: str, /) -> list[Buffer]: ...
    def free(self, tx: Transaction, /) -> list[Buffer]: ...
    def unacknowledged(self, tx: Transaction, seconds: float, /) -> list[Buffer]: ...
    def everything(self, tx: Transaction, /) -> list[Buffer]: ...
    def borrowers(self, tx: Transaction, seconds: float, /) -> list[str]: ...
    def silent(self, tx: Transaction, seconds: float, /) -> set[str]: ...
    def move(
        self,
        tx: Transaction,
        items: Sequence[Buffer],
        /,
        *events: SliceEvent,
        epoch: int,
        host: str | None = None,
        allocation_uuid: str | None = None,
        reason: str = "",
        cause: Cause | None = None,
    ) -> Moves: ...
    def mark(self, tx: Transaction, items: Iterable[Buffer], values: Mapping[str, Any], /) -> None: ...
    def renew(self, tx: Transaction, items: Iterable[Buffer], /) -> None: ...
    def remove(self, tx: Transaction, items: Iterable[Buffer], /) -> None: ...
    def add_allocation(self, tx: Transaction, uuid: str, operation_id: str, asked: Mapping[str, Any], /) -> None: ...
    def allocation(self, tx: Transaction, uuid: str, /) -> RemoteAllocation | None: ...
    def allocations(self, tx: Transaction, /) -> list[RemoteAllocation]: ...
    def unguaranteed(self, tx: Transaction, /) -> set[str]: ...
    def drop_empty(self, tx: Transaction, uuids: Iterable[str], /) -> None: ...


class Splits(Protocol):
    """As pondstack.db.store.splits."""

    def remember(self, tx: Transaction, instance_uuid: str, flavor_key: str, split: Split, /) -> None: ...
    def prune(self, tx: Transaction, keep_seconds: float, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Tables:
    """All that a ledger reads and writes."""

    allocations: Allocations
    buffers: Buffers
    check_epoch: Callable[[Transaction, int, float], None]
    journal: Journal
    pools: Pools
    slices: Slices
    splits: Splits


SQL = Tables(allocations, buffers, check_epoch, journal, pools, slices, splits)
