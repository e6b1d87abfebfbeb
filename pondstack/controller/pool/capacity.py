"""What of the pools can still be claimed: free in the ledger, less what is claimed or pending and not assigned yet.

Between a split and the slices lie Placement's claim and the build of the guest. A split that looked at the ledger alone
would offer the same slices to every VM that is scheduled meanwhile, and Placement would turn the later ones away.
"""

import threading
import time
from collections.abc import Callable, Mapping

from pondstack.controller.pool.snapshot import unusable_hosts
from pondstack.domain.model import PoolState
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from pondstack.prediction.serving import PoolRoom

PoolClaims = Mapping[str, Mapping[str, int]]
"""MiB by pool and consumer, as Placement holds them."""

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


def claimable(view: RackView, claims: PoolClaims, buffer_slices: int, down_seconds: float) -> list[PoolRoom]:
    """Return the pools that are up and that a usable host reaches, with what they could give one VM."""
    unusable = unusable_hosts(view, down_seconds)
    free, held = _mib_in(view, SliceState.FREE), _mib_in(view, SliceState.ASSIGNING, SliceState.ONLINE)
    found = []
    for uuid, detail in view.pools.items():
        if detail.pool.state is PoolState.UP and any(host not in unusable for host in detail.hosts):
            unassigned_mib = max(0, sum(claims.get(uuid, {}).values()) - held.get(uuid, 0))
            claimable_mib = free.get(uuid, 0) - buffer_slices * detail.pool.slice_mib - unassigned_mib
            found.append(
                PoolRoom(detail.pool.name, detail.pool.slices_total * detail.pool.slice_mib, max(0, claimable_mib))
            )
    return found


def _mib_in(view: RackView, *states: SliceState) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for aged in view.slices:
        if aged.item.state in states:
            uuid = aged.item.pool_uuid
            total[uuid] = total.get(uuid, 0) + view.pools[uuid].pool.slice_mib
    return total
