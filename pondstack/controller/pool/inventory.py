"""The pools in Placement: their providers, trait, aggregates, and inventory with `reserved`.

`reserved` of a pool = what is QUARANTINED, and the larger of the free buffer and what is on its way back. Starts use
the buffer while memory comes back, and it fills again with that memory. It also covers the time between Nova dropping a
claim and the controller noticing.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID, uuid5

from oslo_log import log

from pondstack.clients.placement import Inventory, Placement
from pondstack.controller.pool.returns import returning
from pondstack.domain.errors import PondError
from pondstack.domain.host_choice import kept_back
from pondstack.domain.model import PoolState
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from pondstack.domain.units import RESOURCE_CLASS, SHARING_TRAIT
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)

PROVIDER_PREFIX = "pondstack-"
"""Begins the names of the providers that the service makes."""


def provider_name(pool_name: str) -> str:
    """Return the name of a pool's provider."""
    return f"{PROVIDER_PREFIX}{pool_name}"


def aggregate_uuid(pool_uuid: str) -> str:
    """Return the aggregate that joins a pool's provider with the hosts that reach it."""
    return str(uuid5(UUID(pool_uuid), "aggregate"))


def wanted_inventory(view: RackView, pool_uuid: str) -> Inventory:
    """Return the inventory record of one pool, in MiB. A failed pool offers nothing."""
    pool, buffer = view.pools[pool_uuid].pool, view.pools[pool_uuid].free_buffer
    states = [aged.item.state for aged in view.slices if aged.item.pool_uuid == pool_uuid]
    kept = states.count(SliceState.QUARANTINED) + kept_back(buffer.slices, len(returning(view, pool_uuid)))
    if pool.state is not PoolState.UP:
        kept = pool.slices_total
    total = pool.slices_total * pool.slice_mib
    return Inventory(
        total=total,
        reserved=min(kept * pool.slice_mib, total),
        step_size=pool.slice_mib,
        min_unit=pool.slice_mib,
        max_unit=total,
    )


def wanted_aggregates(view: RackView, host: str, present: set[str]) -> set[str]:
    """Return the aggregates of a host's provider: its own others, and those of the pools that guests may use there."""
    ours = {aggregate_uuid(uuid) for uuid in view.pools}
    return (present - ours) | {aggregate_uuid(uuid) for uuid in view.guest_pools(host)}


class InventorySync:
    """Writes the pools to Placement for one leader. A pool that is right already costs one read, after the first time.

    A former leader may be paused between reading a provider and writing it. Placement refuses that write if the
    provider was written since, which each new leader does at once; later writes first check the epoch in the ledger.
    So do those of aggregates: a host that the next leader removed is not joined again.
    """

    def __init__(self, placement: Placement, ledger: Ledger) -> None:
        self._placement = placement
        self._ledger = ledger
        self._lock = threading.Lock()
        self._reach: dict[str, tuple[str, ...]] = {}
        self._made: dict[str, str] = {}
        self._fenced: set[str] = set()

    def forget(self) -> None:
        """Have the next write check providers, traits and aggregates too."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._reach.clear()
        self._made.clear()

    def write(self, view: RackView) -> list[str]:
        """Make Placement agree with the ledger; returns the pools whose inventory changed. Raises Unavailable."""
        return self.refresh(lambda: view)

    def refresh(self, read: Callable[[], RackView]) -> list[str]:
        """Do as write() with the view that `read` returns, which is none of before a removal that goes on now."""
        with self._lock:
            view = read()
            try:
                changed = [uuid for uuid in view.pools if self._write_pool(view, uuid)]
                for host in view.hosts:
                    if self._reach.get(host) != view.guest_pools(host):
                        self._write_host(view, host)
            except PondError:
                # A lost or rebuilt Placement needs everything again.
                self._forget()
                raise
            return changed

    @contextmanager
    def removal(self) -> Iterator[None]:
        """Keep writes out while a host or a pool is removed from Placement and then from the ledger.

        When it is not, the next write restores what it was to Placement.
        """
        with self._lock:
            try:
                yield
            finally:
                # A host or a pool that comes back under the same name is a new one.
                self._forget()

    def differences(self, view: RackView) -> Mapping[str, str]:
        """Return, by pool, how Placement's inventory differs from what it should be; writes nothing."""
        found = {}
        for uuid in view.pools:
            wanted = wanted_inventory(view, uuid)
            present = self._placement.inventory(uuid, RESOURCE_CLASS)
            if present != wanted:
                found[uuid] = f"Placement has {present or 'no inventory'}, it should be {wanted}"
        return found

    def _write_pool(self, view: RackView, uuid: str) -> bool:
        name = view.pools[uuid].pool.name
        if self._made.get(uuid) != name:
            self._placement.ensure_resource_class(RESOURCE_CLASS)
            self._placement.ensure_provider(uuid, provider_name(name))
        wanted = wanted_inventory(view, uuid)
        changed = self._placement.set_inventory(
            uuid, RESOURCE_CLASS, wanted, still=self._ledger.renew, force=uuid not in self._fenced
        )
        self._fenced.add(uuid)
        if self._made.get(uuid) != name:
            self._placement.ensure_trait(uuid, SHARING_TRAIT)
            self._placement.change_aggregates(
                uuid, lambda present: present | {aggregate_uuid(uuid)}, still=self._ledger.renew
            )
            self._made[uuid] = name
        return changed

    def _write_host(self, view: RackView, host: str) -> None:
        """Join a host's provider to the aggregates of its pools; one that Nova has not registered yet comes later."""
        report = view.hosts[host]
        provider = self._placement.host_provider(host)
        if provider is None:
            return
        if self._placement.change_aggregates(
            provider, lambda present: wanted_aggregates(view, host, present), still=self._ledger.renew
        ):
            pools = ", ".join(view.guest_pools(host))
            LOG.info("Guests on host %s may use the pools %s in Placement now", host, pools or "(none)")
        if provider != report.provider_uuid:
            self._ledger.hosts.set_provider(host, provider)
        self._reach[host] = view.guest_pools(host)
