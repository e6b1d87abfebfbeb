"""A snapshot, indexed for scheduling: which host reaches which pool, and what is free there. Pure.

Placement is the admission control and keeps the free buffer back (it is `reserved` there). The ledger's FREE slices are
what an attach can really get, the buffer included: that is what the buffer is for (Pond section 4.2).
"""

from collections import defaultdict
from collections.abc import Iterable

from pondstack.domain import host_choice
from pondstack.domain.model import PoolState
from pondstack.rpc.wire import PoolView, Snapshot


def has_room(pool: PoolView, need_mib: int) -> bool:
    """Say whether the pool is up and has enough free slices now."""
    return pool.state == PoolState.UP and pool.free_slices >= host_choice.slices_needed(need_mib, pool.slice_mib)


def comfort(pool: PoolView, need_mib: int) -> float:
    """Return how comfortable the pool is after a VM of `need_mib` MiB of it, from 0 (none free) to 1 (buffer kept)."""
    left = pool.free_slices - host_choice.slices_needed(need_mib, pool.slice_mib)
    return host_choice.comfort(left, pool.buffer_slices)


class Rack:
    """An immutable, indexed Snapshot. Hosts go by their hypervisor hostname."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.pool_mib_by_host: dict[str, int] = dict(snapshot.pool_mib_by_host)
        self._usable = frozenset(snapshot.usable_hosts)
        pools: defaultdict[str, list[PoolView]] = defaultdict(list)
        for pool in snapshot.pools:
            for host in pool.hosts:
                pools[host].append(pool)
        self._pools = dict(pools)

    def pools_of(self, host: str) -> Iterable[PoolView]:
        """Return the pools that the host reaches."""
        return self._pools.get(host, ())

    def fitting(self, host: str, need_mib: int) -> list[PoolView]:
        """Return the pools with room that a usable host reaches, the most comfortable first."""
        if host not in self._usable:
            return []
        pools = [pool for pool in self.pools_of(host) if has_room(pool, need_mib)]
        return sorted(pools, key=lambda pool: (-comfort(pool, need_mib), -pool.free_slices, pool.uuid))

    def refusal(self, host: str, need_mib: int) -> str:
        """Say why a host has no fitting pool."""
        if host in self.snapshot.unusable_hosts:
            return f"host is unusable: {self.snapshot.unusable_hosts[host]}"
        if host not in self._usable:
            return "host has no pondstack-agent"
        pools = list(self.pools_of(host))
        if not pools:
            return "host reaches no pool"
        free = ", ".join(f"{pool.name} ({pool.state}): {pool.free_slices * pool.slice_mib} MiB free" for pool in pools)
        return f"no pool has {need_mib} MiB free: {free}"
