"""Rows of the rack as the records that readers get (pondstack.ledger.records)."""

from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from pondstack.db.models import AllocationRow, HostPoolRow, PoolRow, SliceRow
from pondstack.db.read import holdings, lending
from pondstack.db.store import host_sleeps
from pondstack.domain.causes import stored
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.states import SliceState
from pondstack.ledger.records import AllocationRecord, HostRecord, PoolRecord, SliceRecord

LEAST_ADVANCED = tuple(SliceState)


def pool_records(session: Session, rows: list[PoolRow]) -> list[PoolRecord]:
    """Return pools with their hosts and slice counts."""
    uuids = [row.uuid for row in rows]
    counts: dict[str, dict[str, int]] = {uuid: dict.fromkeys(map(str, SliceState), 0) for uuid in uuids}
    totals = select(SliceRow.pool_uuid, SliceRow.state, func.count()).where(SliceRow.pool_uuid.in_(uuids))
    for uuid, state, count in session.execute(totals.group_by(SliceRow.pool_uuid, SliceRow.state)):
        counts[uuid][state] = count
    hosts: dict[str, list[str]] = {uuid: [] for uuid in uuids}
    reach = select(HostPoolRow).where(HostPoolRow.pool_uuid.in_(uuids)).order_by(HostPoolRow.host)
    for link in session.execute(reach).scalars():
        hosts[link.pool_uuid].append(link.host)
    return [
        PoolRecord(
            uuid=row.uuid,
            name=row.name,
            serial=row.serial,
            driver=row.driver,
            slice_mib=row.slice_mib,
            slices_total=row.slices_total,
            state=row.state,
            generation=row.generation,
            created_at=row.created_at,
            hosts=tuple(hosts[row.uuid]),
            slices=counts[row.uuid],
            free_buffer=FreeBuffer.from_record(row.free_buffer),
        )
        for row in rows
    ]


def slice_query() -> Select[Any]:
    """Return the query of slices with pool names and consumers."""
    return (
        select(SliceRow, PoolRow.name, AllocationRow.consumer_uuid)
        .join(PoolRow, PoolRow.uuid == SliceRow.pool_uuid)
        .outerjoin(AllocationRow, AllocationRow.uuid == SliceRow.allocation_uuid)
    )


def slice_record(row: SliceRow, pool_name: str, consumer_uuid: str | None) -> SliceRecord:
    """Return one slice."""
    return SliceRecord(
        pool_uuid=row.pool_uuid,
        pool_name=pool_name,
        index=row.index,
        state=row.state,
        host=row.host,
        allocation_uuid=row.allocation_uuid,
        consumer_uuid=consumer_uuid,
        epoch=row.epoch,
        reason=row.reason,
        cause=stored(SliceState(row.state), row.cause, row.failure, row.reason).cause,
        changed_at=row.changed_at,
    )


def host_records(session: Session, rows: list[tuple[Any, ...]], down_seconds: float) -> list[HostRecord]:
    """Return hosts, each row with the database's time."""
    names = [row.name for row, _ in rows]
    pools: dict[str, list[str]] = {name: [] for name in names}
    reach = select(HostPoolRow).where(HostPoolRow.host.in_(names)).order_by(HostPoolRow.pool_uuid)
    for link in session.execute(reach).scalars():
        pools[link.host].append(link.pool_uuid)
    totals = select(AllocationRow.host, func.sum(AllocationRow.pool_mib)).where(AllocationRow.host.in_(names))
    pool_mib = {host: int(total) for host, total in session.execute(totals.group_by(AllocationRow.host))}
    lent, borrowed = lending.lends(session, names), lending.borrows(session, names)
    held, sleeps = holdings.by_host(session, names), host_sleeps.latest_of(session, names)
    return [
        HostRecord(
            name=row.name,
            enabled=row.enabled,
            disabled_reason=row.disabled_reason,
            up=now - row.last_heartbeat <= down_seconds,
            generation=row.generation,
            provider_uuid=row.provider_uuid,
            agent_version=row.agent_version,
            agent_epoch=row.agent_epoch,
            last_heartbeat=row.last_heartbeat,
            heartbeat_age_seconds=max(0.0, now - row.last_heartbeat),
            created_at=row.created_at,
            pools=tuple(pools[row.name]),
            pool_mib=pool_mib.get(row.name, 0),
            fenced=row.fenced_at is not None,
            fenced_reason=row.fenced_reason,
            tiering=row.tiering or {},
            tiering_on=row.tiering_on,
            holdings=tuple(held[row.name]),
            sleep=sleeps.get(row.name),
            **lent[row.name]._asdict(),
            **borrowed[row.name]._asdict(),
        )
        for row, now in rows
    ]


def allocation_records(session: Session, rows: list[tuple[Any, ...]]) -> list[AllocationRecord]:
    """Return allocations, each row with its pool."""
    states: dict[str, list[SliceState]] = {}
    query = select(SliceRow.allocation_uuid, SliceRow.state).distinct()
    for uuid, state in session.execute(query.where(SliceRow.allocation_uuid.in_([row.uuid for row, _ in rows]))):
        states.setdefault(uuid, []).append(SliceState(state))
    # What is being handed over to an allocation is its owner's until then.
    owned = select(AllocationRow.heir, SliceRow.state).join(SliceRow, SliceRow.allocation_uuid == AllocationRow.uuid)
    for uuid, state in session.execute(owned.where(AllocationRow.heir.in_([row.uuid for row, _ in rows])).distinct()):
        states.setdefault(uuid, []).append(SliceState(state))
    return [
        AllocationRecord(
            uuid=row.uuid,
            consumer_uuid=row.consumer_uuid,
            host=row.host,
            pool_uuid=row.pool_uuid,
            pool_name=pool.name,
            extents=tuple(row.extents),
            slice_mib=pool.slice_mib,
            pool_mib=row.pool_mib,
            guest_mib=row.guest_mib,
            project_id=row.project_id,
            user_id=row.user_id,
            state=min(states.get(row.uuid, [SliceState.SANITIZING]), key=LEAST_ADVANCED.index),
            generation=row.generation,
            created_at=row.created_at,
            purpose=row.purpose,
        )
        for row, pool in rows
    ]
