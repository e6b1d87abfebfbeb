"""The scheduler's view of the rack, made from the ledger. Pure."""

from collections.abc import Collection, Mapping

from pondstack.domain.allocator import largest_extent
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import PoolDetail, RackView
from pondstack.domain.states import SliceState
from pondstack.rpc.wire import PoolView, Snapshot


def make_snapshot(view: RackView, *, epoch: int, down_seconds: float) -> Snapshot:
    """Return what PondFilter and PondWeigher get to know."""
    free: dict[str, list[int]] = {uuid: [] for uuid in view.pools}
    for aged in view.slices:
        if aged.item.state is SliceState.FREE:
            free[aged.item.pool_uuid].append(aged.item.index)
    unusable, tiers = unusable_hosts(view, down_seconds), view.tier_nodes()
    return Snapshot(
        epoch=epoch,
        pools=tuple(_pool(detail, free[uuid], tiers) for uuid, detail in sorted(view.pools.items())),
        usable_hosts=tuple(sorted(set(view.hosts) - set(unusable))),
        unusable_hosts=dict(unusable),
        pool_mib_by_host=_pool_mib_by_host(view),
    )


def unusable_hosts(view: RackView, down_seconds: float) -> Mapping[str, str]:
    """Return why hosts get no new pool memory."""
    reasons = {}
    for name, report in view.hosts.items():
        if report.fenced is not None:
            reasons[name] = f"fenced: {report.fenced}"
        elif not report.enabled:
            reasons[name] = f"disabled: {report.disabled_reason}"
        elif report.sleep is not None:
            reasons[name] = f"it is {report.sleep.state}: its memory is lent while it sleeps"
        elif report.age_seconds > down_seconds:
            reasons[name] = f"its agent is silent for {report.age_seconds:.0f} s"
    return reasons


def _pool(detail: PoolDetail, free: list[int], tiers: Collection[tuple[str, str]]) -> PoolView:
    return PoolView(
        uuid=detail.pool.uuid,
        name=detail.pool.name,
        state=str(detail.pool.state),
        slice_mib=detail.pool.slice_mib,
        slices_total=detail.pool.slices_total,
        free_slices=len(free),
        largest_extent=largest_extent(free),
        buffer_slices=detail.free_buffer.slices,
        hosts=tuple(host for host in detail.hosts if (host, detail.pool.uuid) not in tiers),
    )


def _pool_mib_by_host(view: RackView) -> dict[str, int]:
    totals: dict[str, int] = {}
    for aged in view.allocations.values():
        if aged.item.purpose is not Purpose.GUEST:
            continue
        totals[aged.item.host] = totals.get(aged.item.host, 0) + aged.item.pool_mib
    return totals
