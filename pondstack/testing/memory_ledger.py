"""The ledger without SQL: pondstack.db.ledger.Ledger's interface over a MemoryStore, by the same pure rules.

It passes the contract tests of pondstack/tests/db that the SQL ledger passes, and is some hundred times as fast.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid4, uuid5

from pondstack.db.journal import fingerprint
from pondstack.db.ledger import AssignRequest
from pondstack.db.moves import MOVES, describe
from pondstack.db.pools import Receipt
from pondstack.domain.allocator import choose_extents
from pondstack.domain.errors import Conflict, NotAligned, NotFound, OperationMismatch, PoolFragmented, PoolShortage
from pondstack.domain.model import PoolState, Slice, indexes_of
from pondstack.domain.sizing import Split
from pondstack.domain.states import OWNED, SliceEvent, SliceState
from pondstack.domain.units import slices_for
from pondstack.ha.lease import Terms
from pondstack.testing import memory_pools as pools
from pondstack.testing import memory_slices as slices
from pondstack.testing.memory_failures import MemoryFailures
from pondstack.testing.memory_lease import check_epoch
from pondstack.testing.memory_store import AllocationRow, MemoryStore, OperationRow, SplitRow, Transaction

T = TypeVar("T")


class MemoryLedger(MemoryFailures):
    """Writes under one epoch, as pondstack.db.ledger.Ledger does. Thread-safe."""

    def __init__(
        self,
        database: MemoryStore,
        epoch: int,
        down_seconds: float = 20.0,
        *,
        lease_seconds: float = Terms().lease_seconds,
        clock: Callable[[], float] = time.monotonic,
        renewed: Callable[[int, float], object] = lambda _epoch, _started: None,
    ) -> None:
        self.database = database
        self.epoch = epoch
        self._down = down_seconds
        self._lease = lease_seconds
        self._clock = clock
        self._renewed = renewed

    def _write(self, work: Callable[[Transaction], T]) -> T:
        started = self._clock()

        def guarded(tx: Transaction) -> T:
            nonlocal started
            started = self._clock()
            check_epoch(tx, self.epoch, self._lease)
            return work(tx)

        answer = self.database.write(guarded)
        self._renewed(self.epoch, started)
        return answer

    def _recall(self, tx: Transaction, operation_id: str, kind: str, digest: str) -> dict[str, Any] | None:
        row = tx.tables.operations.get((operation_id, kind))
        if row is None:
            return None
        if row.fingerprint != digest:
            raise OperationMismatch(f"operation {operation_id} ({kind}) was already used for another request")
        return dict(row.effect)

    def _record(self, tx: Transaction, operation_id: str, kind: str, digest: str, effect: dict[str, Any]) -> None:
        sequence = self.database.next_sequence()
        row = OperationRow(sequence, operation_id, kind, digest, self.epoch, effect, tx.now())
        tx.put(tx.tables.operations, (operation_id, kind), row)

    def _once(
        self, operation_id: str, kind: str, arguments: dict[str, Any], work: Callable[[Transaction], dict[str, Any]]
    ) -> dict[str, Any]:
        """Run a journaled transaction: the first time `work` makes the effect, later the journal tells it."""
        digest = fingerprint(arguments)

        def guarded(tx: Transaction) -> dict[str, Any]:
            effect = self._recall(tx, operation_id, kind, digest)
            if effect is None:
                effect = work(tx)
                self._record(tx, operation_id, kind, digest, effect)
            return effect

        return self._write(guarded)

    # What agents ask for

    def assign(self, operation_id: str, request: AssignRequest) -> dict[str, Any]:
        """Take free slices for a consumer; as Ledger.assign."""
        uuid = str(uuid5(NAMESPACE_OID, f"pondstack allocation {operation_id}"))
        digest = fingerprint(asdict(request))

        def guarded(tx: Transaction) -> dict[str, Any]:
            effect = self._recall(tx, operation_id, "assign", digest)
            if effect is None:
                effect = self._assign(tx, operation_id, uuid, request)
                self._record(tx, operation_id, "assign", digest, effect)
            elif uuid not in tx.tables.allocations:
                raise Conflict(f"the allocation of operation {operation_id} was released already; make a new id")
            elif any(i.state is SliceState.QUARANTINED for i in slices.of_allocation(tx, uuid)):
                raise Conflict(f"the allocation of operation {operation_id} was quarantined since; make a new id")
            return effect

        return self._write(guarded)

    def _assign(self, tx: Transaction, operation_id: str, uuid: str, request: AssignRequest) -> dict[str, Any]:
        pool = pools.usable_pool(tx, request.pool_uuid, request.host)
        try:
            wanted = slices_for(request.pool_mib, pool.slice_mib)
        except ValueError as error:
            raise NotAligned(f"{error}; ask for whole slices") from None
        if wanted < 1 or (request.shape is not None and sum(request.shape) != wanted):
            raise NotAligned(f"{request.pool_mib} MiB in the shape {request.shape} is no whole number of slices")
        try:
            extents = choose_extents(slices.free_indexes(tx, pool.uuid), wanted, request.shape)
        except PoolFragmented as error:
            raise PoolFragmented(f"pool {pool.name}: {error}") from None
        except PoolShortage as error:
            raise PoolShortage(f"pool {pool.name}: {error}") from None
        taken = [Slice(pool.uuid, index) for index in indexes_of(extents)]
        moves = slices.move(tx, taken, SliceEvent.ASSIGN, epoch=self.epoch, host=request.host, allocation_uuid=uuid)
        asked = {name: value for name, value in asdict(request).items() if name not in ("pool_uuid", "shape")}
        row = AllocationRow(
            uuid=uuid,
            pool_uuid=pool.uuid,
            extents=extents,
            operation_id=operation_id,
            created_at=tx.now(),
            **asked,
        )
        tx.put(tx.tables.allocations, uuid, row)
        plain = [{"start": extent.start, "count": extent.count} for extent in extents]
        return {"allocation_uuid": uuid, "pool_uuid": pool.uuid, "extents": plain, "asked": asked, MOVES: moves}

    def acknowledge(self, operation_id: str, allocation_uuid: str, host: str) -> None:
        """ASSIGNING becomes ONLINE; as Ledger.acknowledge."""

        def work(tx: Transaction) -> dict[str, Any]:
            row = _allocation(tx, allocation_uuid, host)
            mine = slices.of_allocation(tx, allocation_uuid)
            waiting = [item for item in mine if item.state is not SliceState.ONLINE]
            moves = slices.move(tx, waiting, SliceEvent.ACKNOWLEDGE, epoch=self.epoch)
            tx.put(tx.tables.allocations, row.uuid, replace(row, generation=row.generation + 1))
            return {"slices": [item.index for item in waiting], MOVES: moves}

        self._once(operation_id, "acknowledge", {"allocation_uuid": allocation_uuid, "host": host}, work)

    def release(self, operation_id: str, allocation_uuid: str, host: str) -> str | None:
        """The host does not hold the allocation any more; as Ledger.release."""

        def work(tx: Transaction) -> dict[str, Any]:
            row = tx.tables.allocations.get(allocation_uuid)
            if row is not None and row.host != host:
                raise Conflict(f"allocation {allocation_uuid} belongs to host {row.host}, not to {host}")
            mine = [item for item in slices.of_allocation(tx, allocation_uuid) if item.host == host]
            moves = slices.let_go(tx, mine, self.epoch)
            slices.drop_empty_allocations(tx, [allocation_uuid])
            pool_uuid = mine[0].pool_uuid if mine else None
            return {"pool_uuid": pool_uuid, "slices": [item.index for item in mine], MOVES: moves}

        arguments = {"allocation_uuid": allocation_uuid, "host": host}
        pool_uuid: str | None = self._once(operation_id, "release", arguments, work)["pool_uuid"]
        return pool_uuid

    def heartbeat(self, report: Mapping[str, Any]) -> Receipt:
        """Write a report down; a late one changes nothing."""
        return self._write(lambda tx: pools.write_report(tx, report, self._down))

    # What the controller itself does

    def register_pool(self, **values: Any) -> None:
        """Add or refresh a pool; arguments and errors of pondstack.db.pools.register_pool."""

        def work(tx: Transaction) -> None:
            new = pools.register_pool(tx, **values)
            if new:
                moves = [describe(None, Slice(values["uuid"], 0), new)]
                digest = fingerprint({"pool_uuid": values["uuid"]})
                self._record(tx, str(uuid4()), "register_pool", digest, {MOVES: moves})

        self._write(work)

    def set_pool_state(self, uuid: str, state: PoolState) -> bool:
        """Write down a pool's health; returns whether it changed."""
        return self._write(lambda tx: pools.set_pool_state(tx, uuid, state))

    def set_host(
        self, name: str, enabled: bool, reason: str, generation: int | None, operation_id: str | None = None
    ) -> int:
        """Enable or disable a host; returns its new generation. Raises NotFound, GenerationConflict."""

        def work(tx: Transaction) -> dict[str, Any]:
            return {"generation": pools.set_host(tx, name, enabled, reason, generation), MOVES: []}

        arguments = {"name": name, "enabled": enabled, "reason": reason, "generation": generation}
        now: int = self._once(operation_id or str(uuid4()), "set_host", arguments, work)["generation"]
        return now

    def set_provider(self, name: str, provider_uuid: str) -> None:
        """Remember the UUID of a host's Placement provider."""
        self._write(lambda tx: pools.set_provider(tx, name, provider_uuid))

    def begin_release(self, allocation_uuid: str, reason: str) -> int:
        """ASSIGNING and ONLINE become RELEASING. Returns how many."""

        def work(tx: Transaction) -> dict[str, Any]:
            mine = slices.of_allocation(tx, allocation_uuid)
            held = [item for item in mine if item.state in (SliceState.ASSIGNING, SliceState.ONLINE)]
            moves = slices.move(tx, held, SliceEvent.RELEASE, epoch=self.epoch, reason=reason)
            return {"slices": [item.index for item in held], MOVES: moves}

        return self._count("begin_release", {"allocation_uuid": allocation_uuid}, work)

    def quarantine_allocation(self, allocation_uuid: str, reason: str) -> int:
        """Set all owned slices of an allocation aside. Returns how many."""

        def work(tx: Transaction) -> dict[str, Any]:
            held = [item for item in slices.of_allocation(tx, allocation_uuid) if item.state in OWNED]
            moves = slices.move(tx, held, SliceEvent.QUARANTINE, epoch=self.epoch, reason=reason)
            return {"slices": [item.index for item in held], MOVES: moves}

        return self._count("quarantine", {"allocation_uuid": allocation_uuid}, work)

    def quarantine_slices(
        self,
        pool_uuid: str,
        indexes: Iterable[int],
        reason: str,
        *,
        host: str | None = None,
        allocation_uuid: str | None = None,
    ) -> int:
        """Set those slices aside that nobody owns. Returns how many."""
        wanted = sorted(indexes)

        def work(tx: Transaction) -> dict[str, Any]:
            loose = (SliceState.FREE, SliceState.SANITIZING)
            found = [item for item in slices.at(tx, pool_uuid, wanted) if item.state in loose]
            cause = {"host": host, "allocation_uuid": allocation_uuid}
            moves = slices.move(tx, found, SliceEvent.QUARANTINE, epoch=self.epoch, reason=reason, **cause)
            return {"slices": [item.index for item in found], MOVES: moves}

        return self._count("quarantine", {"pool_uuid": pool_uuid, "indexes": wanted}, work)

    def audit_slices(self, pool_uuid: str, indexes: Iterable[int], reason: str) -> int:
        """QUARANTINED becomes SANITIZING. Returns how many."""
        wanted = sorted(indexes)

        def work(tx: Transaction) -> dict[str, Any]:
            found = [i for i in slices.at(tx, pool_uuid, wanted) if i.state is SliceState.QUARANTINED]
            moves = slices.move(tx, found, SliceEvent.AUDIT, epoch=self.epoch, reason=reason)
            slices.drop_empty_allocations(tx, {i.allocation_uuid for i in found if i.allocation_uuid})
            return {"slices": [item.index for item in found], MOVES: moves}

        return self._count("audit", {"pool_uuid": pool_uuid, "indexes": wanted}, work)

    def sanitized(self, pool_uuid: str, indexes: Iterable[int]) -> int:
        """SANITIZING becomes FREE. Returns how many."""
        wanted = sorted(indexes)

        def work(tx: Transaction) -> dict[str, Any]:
            found = [i for i in slices.at(tx, pool_uuid, wanted) if i.state is SliceState.SANITIZING]
            moves = slices.move(tx, found, SliceEvent.SANITIZED, epoch=self.epoch)
            return {"slices": [item.index for item in found], MOVES: moves}

        return self._count("sanitized", {"pool_uuid": pool_uuid, "indexes": wanted}, work)

    def mark_claims(self, claimed: Sequence[str], unclaimed: Sequence[str]) -> None:
        """Note which allocations Placement backs with a claim."""

        def work(tx: Transaction) -> None:
            rows = tx.tables.allocations
            for uuid in claimed:
                if uuid in rows and rows[uuid].unclaimed_since is not None:
                    tx.put(rows, uuid, replace(rows[uuid], unclaimed_since=None))
            for uuid in unclaimed:
                if uuid in rows and rows[uuid].unclaimed_since is None:
                    tx.put(rows, uuid, replace(rows[uuid], unclaimed_since=tx.now()))

        if claimed or unclaimed:
            self._write(work)

    def renew(self) -> None:
        """Show that this writer lives; raises NotLeader."""
        self._write(lambda _tx: None)

    def remember_split(self, instance_uuid: str, flavor_key: str, split: Split) -> None:
        """Keep the split of an instance for its moves."""
        self._write(lambda tx: tx.put(tx.tables.splits, instance_uuid, SplitRow(flavor_key, split, tx.now())))

    def prune(self, keep_seconds: float) -> int:
        """Forget operations and splits that are older than `keep_seconds`; returns how many operations."""

        def work(tx: Transaction) -> int:
            limit = tx.now() - keep_seconds
            holders = {row.consumer_uuid for row in tx.tables.allocations.values()}
            for uuid in [u for u, row in tx.tables.splits.items() if row.created_at < limit and u not in holders]:
                tx.delete(tx.tables.splits, uuid)
            newest = max((row.sequence for row in tx.tables.operations.values()), default=0)
            old = [k for k, row in tx.tables.operations.items() if row.created_at < limit and row.sequence < newest]
            for key in old:
                tx.delete(tx.tables.operations, key)
            return len(old)

        return self._write(work)

    def _count(self, kind: str, arguments: dict[str, Any], work: Callable[[Transaction], dict[str, Any]]) -> int:
        return len(self._once(str(uuid4()), kind, arguments, work)["slices"])


def _allocation(tx: Transaction, uuid: str, host: str) -> AllocationRow:
    row = tx.tables.allocations.get(uuid)
    if row is None:
        raise NotFound(f"there is no allocation {uuid}; it was released, attach again")
    if row.host != host:
        raise Conflict(f"allocation {uuid} belongs to host {row.host}, not to {host}")
    return row
