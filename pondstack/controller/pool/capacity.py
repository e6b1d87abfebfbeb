"""What of the pools can still be claimed: free in the ledger, less what is claimed or pending and not assigned yet.

Less the free buffer, too, as far as no memory is on its way back that will fill it again.

Between a split and the slices lie Placement's claim and the build of the guest. A split that looked at the ledger alone
would offer the same slices to every VM that is scheduled meanwhile, and Placement would turn the later ones away.
"""

import threading
import time
from collections.abc import Callable

from pondstack.controller.pool.returns import PoolClaims, returning
from pondstack.controller.pool.snapshot import unusable_hosts
from pondstack.domain.model import PoolState
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from pondstack.prediction.serving import PoolRoom

PENDING_SECONDS = 5.0
"""From a split to its claim Nova's scheduler takes less; a split that is not claimed by then was not used."""


class PendingSplits:
    """The pool memory of splits that were answered lately and are not claimed yet; thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[int, float]] = {}

    def add(self, consumer_uuid: str, pool_mib: int) -> None:
        """Note a split, in place of an older one of this consumer."""
        with self._lock:
            self._pending[consumer_uuid] = (pool_mib, self._clock())

    def pending_mib(self, view: RackView, claims: PoolClaims, consumer_uuid: str) -> int:
        """Return the pool memory of other consumers' splits that is neither claimed nor held yet, in MiB."""
        seen = {aged.item.consumer_uuid for aged in view.allocations.values()}
        seen.update(consumer for held in claims.values() for consumer in held)
        oldest = self._clock() - PENDING_SECONDS
        with self._lock:
            self._pending = {
                uuid: added for uuid, added in self._pending.items() if added[1] > oldest and uuid not in seen
            }
            return sum(mib for uuid, (mib, _moment) in self._pending.items() if uuid != consumer_uuid)


def claimable(view: RackView, claims: PoolClaims, down_seconds: float) -> list[PoolRoom]:
    """Return the pools that are up and that a usable host reaches, with what they could give one VM."""
    unusable, tiers = unusable_hosts(view, down_seconds), view.tier_nodes()
    found = []
    for uuid, detail in view.pools.items():
        hosts = [host for host in detail.hosts if host not in unusable and (host, uuid) not in tiers]
        if detail.pool.state is PoolState.UP and hosts:
            slices = _claimable_slices(view, uuid, claims)
            pool = detail.pool
            found.append(PoolRoom(pool.name, pool.slices_total * pool.slice_mib, max(0, slices) * pool.slice_mib))
    return found


def _claimable_slices(view: RackView, pool_uuid: str, claims: PoolClaims) -> int:
    detail = view.pools[pool_uuid]
    back = {item.index for item in returning(view, pool_uuid, claims)}
    mine = [aged.item for aged in view.slices if aged.item.pool_uuid == pool_uuid]
    free = sum(item.state is SliceState.FREE for item in mine)
    held = sum(item.state in (SliceState.ASSIGNING, SliceState.ONLINE) and item.index not in back for item in mine)
    claimed = sum(claims.get(pool_uuid, {}).values()) // detail.pool.slice_mib
    buffer = max(0, detail.free_buffer.slices - len(back))
    return free - buffer - max(0, claimed - held)
