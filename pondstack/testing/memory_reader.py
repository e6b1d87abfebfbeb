"""Read side of a MemoryStore: pondstack.db.sql_reader.SqlReader's interface."""

from collections.abc import Iterable
from typing import Any, TypeVar

from pondstack.db.views import (
    AllocationRecord,
    ControllerView,
    HostRecord,
    LeaderRecord,
    LenderRecord,
    PoolRecord,
    SliceRecord,
)
from pondstack.domain.errors import NotFound
from pondstack.domain.model import Allocation, Pool, PoolState
from pondstack.domain.rack import AgedAllocation, AgedSlice, HostReport, PoolDetail, RackView
from pondstack.domain.states import SliceState
from pondstack.testing import memory_controllers
from pondstack.testing.memory_store import AllocationRow, HostRow, MemoryStore, PoolRow, SliceRow, Transaction

T = TypeVar("T")
LEAST_ADVANCED = tuple(SliceState)


class MemoryReader:
    """Each method is one look at the store.

    `agent_down_seconds`, `node_down_seconds`: silence after which a host is not up, and a controller is down.
    """

    def __init__(self, database: MemoryStore, agent_down_seconds: float = 20.0, node_down_seconds: float = 5.0) -> None:
        self._database = database
        self._down = agent_down_seconds
        self._node_down = node_down_seconds

    def rack(self) -> RackView:
        """Return the whole ledger at one moment."""
        return self._database.read(read_rack)

    def ping(self) -> None:
        """Raise Unavailable when the store does not answer."""
        self._database.ping()

    def leader(self) -> LeaderRecord:
        """Return the leadership row."""

        def work(tx: Transaction) -> LeaderRecord:
            row = tx.tables.leadership[1]
            return LeaderRecord(row.epoch, row.holder, max(0.0, tx.now() - row.renewed_at))

        return self._database.read(work)

    def controllers(self) -> list[ControllerView]:
        """List the controllers by name, those that are down too."""
        return self._database.read(lambda tx: memory_controllers.views(tx, self._node_down))

    def pools(self, *, limit: int | None = None, marker: str | None = None) -> list[PoolRecord]:
        """List pools by uuid; raises NotFound for an unknown marker."""
        return self._database.read(
            lambda tx: [_pool(tx, row) for row in _page(tx.tables.pools, marker, limit, "pool").values()]
        )

    def pool(self, uuid_or_name: str) -> PoolRecord:
        """Return one pool; raises NotFound."""

        def work(tx: Transaction) -> PoolRecord:
            for row in tx.tables.pools.values():
                if uuid_or_name in (row.uuid, row.name):
                    return _pool(tx, row)
            raise NotFound(f"there is no pool {uuid_or_name}; list the pools")

        return self._database.read(work)

    def slices(
        self,
        pool_uuid: str,
        *,
        state: str | None = None,
        host: str | None = None,
        limit: int | None = None,
        marker: int | None = None,
    ) -> list[SliceRecord]:
        """List the slices of a pool by index; raises NotFound for an unknown pool or marker."""

        def work(tx: Transaction) -> list[SliceRecord]:
            _need(tx.tables.pools, pool_uuid, "pool")
            rows = {index: row for (pool, index), row in tx.tables.slices.items() if pool == pool_uuid}
            wanted = {
                index: row
                for index, row in _page(rows, marker, None, "slice").items()
                if state in (None, str(row.item.state)) and host in (None, row.item.host)
            }
            return [_slice(tx, row) for row in list(wanted.values())[:limit]]

        return self._database.read(work)

    def slice(self, pool_uuid: str, index: int) -> SliceRecord:
        """Return one slice; raises NotFound."""

        def work(tx: Transaction) -> SliceRecord:
            row = tx.tables.slices.get((pool_uuid, index))
            if row is None:
                raise NotFound(f"there is no slice {index} in pool {pool_uuid}; list the slices of the pool")
            return _slice(tx, row)

        return self._database.read(work)

    def hosts(self, *, limit: int | None = None, marker: str | None = None) -> list[HostRecord]:
        """List hosts by name; raises NotFound for an unknown marker."""
        return self._database.read(
            lambda tx: [_host(tx, row, self._down) for row in _page(tx.tables.hosts, marker, limit, "host").values()]
        )

    def host(self, name: str) -> HostRecord:
        """Return one host; raises NotFound."""

        def work(tx: Transaction) -> HostRecord:
            row = tx.tables.hosts.get(name)
            if row is None:
                raise NotFound(f"there is no host {name}; its agent has never reported")
            return _host(tx, row, self._down)

        return self._database.read(work)

    def lenders(self) -> list[LenderRecord]:
        """List the hosts that lend something, or have not got all back."""
        return self._database.read(read_lenders)

    def allocations(
        self,
        *,
        project_id: str | None = None,
        consumer_uuid: str | None = None,
        host: str | None = None,
        pool_uuid: str | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[AllocationRecord]:
        """List allocations by uuid; raises NotFound for an unknown marker."""
        wanted = {"project_id": project_id, "consumer_uuid": consumer_uuid, "host": host, "pool_uuid": pool_uuid}

        def work(tx: Transaction) -> list[AllocationRecord]:
            rows = [
                row
                for row in _page(tx.tables.allocations, marker, None, "allocation").values()
                if all(value in (None, getattr(row, name)) for name, value in wanted.items())
            ]
            return [_allocation(tx, row) for row in rows[:limit]]

        return self._database.read(work)

    def allocation(self, uuid: str) -> AllocationRecord:
        """Return one allocation; raises NotFound."""

        def work(tx: Transaction) -> AllocationRecord:
            row = tx.tables.allocations.get(uuid)
            if row is None:
                raise NotFound(f"there is no allocation {uuid}; list the allocations")
            return _allocation(tx, row)

        return self._database.read(work)


def read_rack(tx: Transaction) -> RackView:
    """Return everything, as pondstack.db.rack_view.read_rack does."""
    tables, now = tx.tables, tx.now()
    by_age = sorted(tables.allocations.values(), key=lambda row: (row.created_at, row.uuid))
    return RackView(
        pools={row.uuid: _detail(tx, row) for row in tables.pools.values()},
        slices=tuple(AgedSlice(row.item, now - row.changed_at) for _, row in sorted(tables.slices.items())),
        allocations={row.uuid: _aged(tx, row, now) for row in by_age},
        hosts={name: _report(row, now) for name, row in sorted(tables.hosts.items())},
    )


def read_lenders(tx: Transaction) -> list[LenderRecord]:
    """Return the lenders by host, as pondstack.db.lent.lenders does."""
    found = []
    for host, item in sorted(tx.tables.lenders.items()):
        counts = dict.fromkeys(map(str, SliceState), 0)
        for row in tx.tables.buffers.values():
            counts[str(row.item.state)] += row.item.lender == host
        lent, kind = sum(counts.values()), str(item.kind)
        if item.incarnation or lent:
            mib = lent * item.buffer_mib
            found.append(LenderRecord(host, item.incarnation, kind, item.buffer_mib, mib, None, counts, (), 0.0))
    return found


def _aged(tx: Transaction, row: AllocationRow, now: float) -> AgedAllocation:
    item = Allocation(
        row.uuid,
        row.consumer_uuid,
        row.host,
        row.pool_uuid,
        row.extents,
        slice_mib=tx.tables.pools[row.pool_uuid].slice_mib,
        guest_mib=row.guest_mib,
        project_id=row.project_id,
        user_id=row.user_id,
    )
    return AgedAllocation(
        item, now - row.created_at, None if row.unclaimed_since is None else now - row.unclaimed_since
    )


def _report(row: HostRow, now: float) -> HostReport:
    return HostReport(
        row.name,
        row.enabled,
        row.disabled_reason,
        row.provider_uuid,
        now - row.last_heartbeat,
        row.attached,
        tuple(sorted(row.pools)),
        None if row.fenced_at is None else row.fenced_reason,
        row.stuck,
        row.sequence,
    )


def _detail(tx: Transaction, row: PoolRow) -> PoolDetail:
    pool = Pool(row.uuid, row.name, row.slices_total, row.slice_mib, PoolState(row.state))
    return PoolDetail(pool, row.driver, row.serial, row.address, _reaching(tx, row.uuid), row.generation)


def _reaching(tx: Transaction, pool_uuid: str) -> tuple[str, ...]:
    return tuple(sorted(row.name for row in tx.tables.hosts.values() if pool_uuid in row.pools))


def _pool(tx: Transaction, row: PoolRow) -> PoolRecord:
    counts = dict.fromkeys(map(str, SliceState), 0)
    for (pool, _), slice_row in tx.tables.slices.items():
        if pool == row.uuid:
            counts[str(slice_row.item.state)] += 1
    return PoolRecord(
        uuid=row.uuid,
        name=row.name,
        serial=row.serial,
        driver=row.driver,
        slice_mib=row.slice_mib,
        slices_total=row.slices_total,
        state=row.state,
        generation=row.generation,
        created_at=row.created_at,
        hosts=_reaching(tx, row.uuid),
        slices=counts,
    )


def _slice(tx: Transaction, row: SliceRow) -> SliceRecord:
    item = row.item
    allocation = tx.tables.allocations.get(item.allocation_uuid or "")
    return SliceRecord(
        pool_uuid=item.pool_uuid,
        pool_name=tx.tables.pools[item.pool_uuid].name,
        index=item.index,
        state=str(item.state),
        host=item.host,
        allocation_uuid=item.allocation_uuid,
        consumer_uuid=allocation.consumer_uuid if allocation else None,
        epoch=item.epoch,
        reason=item.reason,
        changed_at=row.changed_at,
    )


def _host(tx: Transaction, row: HostRow, down_seconds: float) -> HostRecord:
    age = tx.now() - row.last_heartbeat
    return HostRecord(
        name=row.name,
        enabled=row.enabled,
        disabled_reason=row.disabled_reason,
        up=age <= down_seconds,
        generation=row.generation,
        provider_uuid=row.provider_uuid,
        agent_version=row.agent_version,
        agent_epoch=row.agent_epoch,
        last_heartbeat=row.last_heartbeat,
        heartbeat_age_seconds=max(0.0, age),
        created_at=row.created_at,
        pools=tuple(sorted(row.pools)),
        pool_mib=sum(item.pool_mib for item in tx.tables.allocations.values() if item.host == row.name),
        fenced=row.fenced_at is not None,
        fenced_reason=row.fenced_reason,
        tiering=row.tiering,
    )


def _allocation(tx: Transaction, row: AllocationRow) -> AllocationRecord:
    pool = tx.tables.pools[row.pool_uuid]
    states = [item.item.state for item in tx.tables.slices.values() if item.item.allocation_uuid == row.uuid]
    return AllocationRecord(
        uuid=row.uuid,
        consumer_uuid=row.consumer_uuid,
        host=row.host,
        pool_uuid=row.pool_uuid,
        pool_name=pool.name,
        extents=tuple({"start": extent.start, "count": extent.count} for extent in row.extents),
        slice_mib=pool.slice_mib,
        pool_mib=row.pool_mib,
        guest_mib=row.guest_mib,
        project_id=row.project_id,
        user_id=row.user_id,
        state=min(states or [SliceState.SANITIZING], key=LEAST_ADVANCED.index),
        generation=row.generation,
        created_at=row.created_at,
    )


def _need(rows: Iterable[Any], key: Any, noun: str) -> None:
    if key is not None and key not in rows:
        raise NotFound(f"there is no {noun} {key}; start again without a marker")


def _page(rows: dict[Any, T], marker: Any, limit: int | None, noun: str) -> dict[Any, T]:
    _need(rows, marker, noun)
    keys = sorted(key for key in rows if marker is None or key > marker)
    return {key: rows[key] for key in keys[:limit]}
