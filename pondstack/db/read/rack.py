"""Reads the rack at one moment, with ages by the database's clock (pondstack.domain.rack).

The statements are made once: every controller reads hosts and pools twice a second, and to make a statement costs as
much as to run it. The tables that stay small are read without the ORM.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, HostPoolRow, HostRow, PoolRow, SliceRow, table
from pondstack.db.store import holdings, host_sleeps
from pondstack.db.store.slices import to_domain
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.model import Allocation, Extent, Pool, PoolState
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import AgedAllocation, AgedSlice, HostReport, PoolDetail, RackView
from pondstack.domain.units import DEFAULT_SLICE_MIB

_NOW = select(now_seconds())
_REACH = select(table(HostPoolRow))
_POOLS = select(table(PoolRow))
_HOSTS = select(table(HostRow)).order_by(table(HostRow).c.name)
_SLICES = select(SliceRow).order_by(SliceRow.pool_uuid, SliceRow.index)
_ALLOCATIONS = select(AllocationRow).order_by(AllocationRow.created_at, AllocationRow.uuid)


def read_rest(session: Session, now: float) -> RackView:
    """Read pools and hosts only: the tables that stay small. `now`: the moment that ages count to."""
    reach = [(link.host, link.pool_uuid) for link in session.execute(_REACH)]
    sleeps = {item.host: item for item in host_sleeps.unended(session)}
    return RackView(
        pools={row.uuid: _pool(row, reach) for row in session.execute(_POOLS)},
        hosts={row.name: _host(row, reach, now, sleeps.get(row.name)) for row in session.execute(_HOSTS)},
        holdings={item.key: item for item in holdings.find(session)},
    )


def read_rack(session: Session) -> RackView:
    """Read everything in one transaction."""
    now = session.execute(_NOW).scalar_one()
    rest = read_rest(session, now)
    return replace(
        rest,
        slices=tuple(AgedSlice(to_domain(row), now - row.changed_at) for row in session.execute(_SLICES).scalars()),
        allocations={row.uuid: _allocation(row, rest.pools, now) for row in session.execute(_ALLOCATIONS).scalars()},
    )


def _pool(row: Row[Any], reach: list[tuple[str, str]]) -> PoolDetail:
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
        heir=row.heir,
    )
    unclaimed = None if row.unclaimed_since is None else now - row.unclaimed_since
    return AgedAllocation(item, now - row.created_at, unclaimed)


def _host(row: Row[Any], reach: list[tuple[str, str]], now: float, sleep: HostSleep | None) -> HostReport:
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
        sleep,
    )
