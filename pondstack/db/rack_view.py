"""The whole ledger at one moment, with ages by the database's clock: what reconciler and scheduler see."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from pondstack.db.clock import now_seconds
from pondstack.db.models import AllocationRow, HostPoolRow, HostRow, PoolRow, SliceRow
from pondstack.db.slices import to_domain
from pondstack.domain.ledger import LedgerView
from pondstack.domain.model import Allocation, Extent, Pool, PoolState, Slice
from pondstack.domain.units import DEFAULT_SLICE_MIB


@dataclass(frozen=True, slots=True)
class PoolDetail:
    """A pool with what a host driver needs to reach its device. `failures` grows whenever its state changes."""

    pool: Pool
    driver: str
    serial: str
    address: Mapping[str, Any]
    hosts: tuple[str, ...] = ()
    failures: int = 0


@dataclass(frozen=True, slots=True)
class AgedSlice:
    """A slice and the seconds since it changed."""

    item: Slice
    age_seconds: float


@dataclass(frozen=True, slots=True)
class AgedAllocation:
    """An allocation, the seconds since it was made and (None: it is claimed) since it was first seen unclaimed."""

    item: Allocation
    age_seconds: float
    unclaimed_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class HostReport:
    """A host and its newest report: the seconds since it came, and what is attached (Attached on the wire).

    `fenced`: why it is fenced, None: it is not. `stuck`: why an allocation's memory does not go offline, by UUID.
    `sequence`: the report's own number.
    """

    name: str
    enabled: bool
    disabled_reason: str
    provider_uuid: str | None
    age_seconds: float
    attached: tuple[Mapping[str, Any], ...] = ()
    pools: tuple[str, ...] = ()
    fenced: str | None = None
    stuck: Mapping[str, str] = field(default_factory=dict)
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class RackView:
    """Pools, slices, allocations and hosts by key."""

    pools: Mapping[str, PoolDetail] = field(default_factory=dict)
    slices: tuple[AgedSlice, ...] = ()
    allocations: Mapping[str, AgedAllocation] = field(default_factory=dict)
    hosts: Mapping[str, HostReport] = field(default_factory=dict)

    def ledger(self) -> LedgerView:
        """Return what pondstack.domain.ledger judges."""
        return LedgerView(
            {uuid: detail.pool for uuid, detail in self.pools.items()},
            tuple(aged.item for aged in self.slices),
            {uuid: aged.item for uuid, aged in self.allocations.items()},
        )


def read_rest(session: Session) -> RackView:
    """Read pools and hosts only: the tables that stay small."""
    now = session.execute(select(now_seconds())).scalar_one()
    reach = [(link.host, link.pool_uuid) for link in session.execute(select(HostPoolRow)).scalars()]
    pools = {row.uuid: _pool(row, reach) for row in session.execute(select(PoolRow)).scalars()}
    hosts = session.execute(select(HostRow).order_by(HostRow.name)).scalars()
    return RackView(pools=pools, hosts={row.name: _host(row, reach, now) for row in hosts})


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
    )
