"""What of the pools can still be claimed: free in the ledger, less what is claimed and not assigned yet. Pure.

Less the free buffer, too, as far as no memory is on its way back that will fill it again.
"""

from collections import defaultdict
from collections.abc import Sequence

from pondstack.controller.pool.returns import PoolClaims, returning
from pondstack.controller.pool.snapshot import unusable_hosts
from pondstack.domain.host_choice import kept_back
from pondstack.domain.model import PoolState, Slice
from pondstack.domain.rack import RackView
from pondstack.domain.room import PoolRoom
from pondstack.domain.states import SliceState


def claimable(view: RackView, claims: PoolClaims, down_seconds: float) -> list[PoolRoom]:
    """Return the pools that are up and that a usable host reaches, with what they could give one VM."""
    unusable, tiers = unusable_hosts(view, down_seconds), view.tier_nodes()
    slices: defaultdict[str, list[Slice]] = defaultdict(list)
    for aged in view.slices:
        slices[aged.item.pool_uuid].append(aged.item)
    found = []
    for uuid, detail in view.pools.items():
        hosts = [host for host in detail.hosts if host not in unusable and (host, uuid) not in tiers]
        if detail.pool.state is PoolState.UP and hosts:
            count = _claimable_slices(view, uuid, slices[uuid], claims)
            pool = detail.pool
            found.append(PoolRoom(pool.name, pool.slices_total * pool.slice_mib, max(0, count) * pool.slice_mib))
    return found


def _claimable_slices(view: RackView, pool_uuid: str, mine: Sequence[Slice], claims: PoolClaims) -> int:
    detail = view.pools[pool_uuid]
    back = {item.index for item in returning(view, pool_uuid, claims)}
    free = sum(item.state is SliceState.FREE for item in mine)
    held = sum(item.state in (SliceState.ASSIGNING, SliceState.ONLINE) and item.index not in back for item in mine)
    claimed = sum(claims.get(pool_uuid, {}).values()) // detail.pool.slice_mib
    buffer = kept_back(detail.free_buffer.slices, len(back)) - len(back)
    return free - buffer - max(0, claimed - held)
