"""Which slices are on their way back to a pool: nobody claims them any more, and they are not free yet. Pure."""

from collections.abc import Iterator, Mapping

from pondstack.domain.model import PoolState, Slice
from pondstack.domain.rack import RackView
from pondstack.domain.states import OWNED, SliceState

PoolClaims = Mapping[str, Mapping[str, int]]
"""MiB by pool and consumer, as Placement holds them; a pool that is not there was not asked about."""


def returning(view: RackView, pool_uuid: str, claims: PoolClaims | None = None) -> list[Slice]:
    """Return the slices of a pool that are on their way back, those that never may come among them.

    With `claims`, read after `view`, also those whose consumer has dropped its claim and of which the ledger does not
    know that yet: where a host takes memory offline in the background, they are ONLINE all the while.
    """
    held = (claims or {}).get(pool_uuid)
    unclaimed = {
        uuid
        for uuid, aged in view.allocations.items()
        if aged.unclaimed_seconds is not None or (held is not None and aged.item.consumer_uuid not in held)
    }
    return [item for item in _of_pool(view, pool_uuid) if _returns(item, unclaimed)]


def returning_soon(view: RackView, pool_uuid: str, claims: PoolClaims, down_seconds: float) -> int:
    """Return how many of them will come back by themselves: pool and agent answer, and nothing is stuck."""
    if view.pools[pool_uuid].pool.state is not PoolState.UP:
        return 0
    return sum(_moves(view, item, down_seconds) for item in returning(view, pool_uuid, claims))


def _of_pool(view: RackView, pool_uuid: str) -> Iterator[Slice]:
    return (aged.item for aged in view.slices if aged.item.pool_uuid == pool_uuid)


def _returns(item: Slice, unclaimed: set[str]) -> bool:
    if item.state in OWNED:
        return item.state is SliceState.RELEASING or item.allocation_uuid in unclaimed
    return item.state is SliceState.SANITIZING


def _moves(view: RackView, item: Slice, down_seconds: float) -> bool:
    if item.state is SliceState.SANITIZING:
        return True
    report = view.hosts.get(item.host or "")
    if report is None or report.fenced is not None or report.age_seconds > down_seconds:
        return False
    return item.allocation_uuid not in report.stuck
