"""Reads the rack at one moment, with ages by the database's clock (pondstack.domain.rack)."""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, HostPoolRow, HostRow, PoolRow, SliceRow
from pondstack.db.store import holdings
from pondstack.db.store.slices import to_domain
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.model import Allocation, Extent, Pool, PoolState
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedAllocation, AgedSlice, HostReport, PoolDetail, RackView
from pondstack.domain.units import DEFAULT_SLICE_MIB


def read_rest(session: Session) -> RackView:
    """Read pools and hosts only: the tables that stay small."""
    now = session.execute(select(now_seconds())).scalar_one()
    reach = [(link.host, link.pool_uuid) for link in session.execute(select(HostPoolRow)).scalars()]
    pools = {row.uuid: _pool(row, reach) for row in session.execute(select(PoolRow)).scalars()}
    hosts = session.execute(select(HostRow).order_by(HostRow.name)).scalars()
    return RackView(
        pools=pools,
        hosts={row.name: _host(row, reach, now) for row in hosts},
        holdings={item.key: item for item in holdings.find(session)},
    )


def read_rack(session: Session) -> RackView:
    """Read everything in one transaction."""
    rest = read_rest(session)
    now = session.execute(select(now_seconds())).scalar_one()
    slices = session.execute(select(SliceRow).order_by(SliceRow.pool_uuid, SliceRow.index)).scalars()
    allocations = session.execute(
        select(AllocationRow).order_by(AllocationRow.created_at, AllocationRow.uuid)
    ).scalars()
    return replace(
        rest,
        slices=tuple(AgedSlice(to_domain(row), now - row.changed_at) for row in slices),
        allocations={row.uuid: _allocation(row, rest.pools, now) for row in allocations},
    )


def _pool(row: PoolRow, reach: list[tuple[str, str]]) -> PoolDetail:
    return PoolDetail(
        Pool(row.uuid, row.name, row.slices_total, row.slice_mib, PoolState(row.state)),
        row.driver,
        row.serial,
        row.address,
        tuple(sorted(host for host, uuid in reach if uuid == row.uuid)),
        row.generation,
        FreeBuffer.from_record(row.free_buffer),
    )


def _allocation(row: AllocationRow, pools: Mapping[str, PoolDetail], now: float) -> AgedAllocation:
    pool = pools.get(row.pool_uuid)
    item = Allocation(
        row.uuid,
        row.consumer_uuid,
        row.host,
        row.pool_uuid,
        tuple(Extent(extent["start"], extent["count"]) for extent in row.extents),
        slice_mib=pool.pool.slice_mib if pool else DEFAULT_SLICE_MIB,
        guest_mib=row.guest_mib,
        project_id=row.project_id,
        user_id=row.user_id,
        purpose=Purpose(row.purpose),
    )
    unclaimed = None if row.unclaimed_since is None else now - row.unclaimed_since
    return AgedAllocation(item, now - row.created_at, unclaimed)


def _host(row: HostRow, reach: list[tuple[str, str]], now: float) -> HostReport:
    return HostReport(
        row.name,
        row.enabled,
        row.disabled_reason,
        row.provider_uuid,
        now - row.last_heartbeat,
        tuple(row.attached),
        tuple(sorted(uuid for host, uuid in reach if host == row.name)),
        None if row.fenced_at is None else row.fenced_reason,
        row.stuck or {},
        row.sequence,
        row.lending,
        row.borrowed,
        row.generation,
    )
