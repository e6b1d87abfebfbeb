"""Removes hosts and pools: from Placement first, then from the ledger, whole or not at all.

What Nova owns in Placement stays: the provider of a host, its inventories, traits and other aggregates. If the ledger
refuses in the end, the next write of the inventory puts Placement right again; so it does after a crash in between.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from oslo_log import log

from pondstack.clients.placement import Placement
from pondstack.controller.lending import inventory as lending
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.controller.pool.inventory import InventorySync, aggregate_uuid
from pondstack.domain import remains
from pondstack.domain.admission import consumers
from pondstack.domain.host_slices import HoldingKey
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.rack import RackView
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)

MOST_NAMED = 5
"""How many consumers a refusal names."""


class Remover:
    """Removes hosts and pools for one leader. Thread-safe. `placement` None: Placement is not used."""

    def __init__(
        self,
        ledger: Ledger,
        view: Callable[[], RackView],
        devices: DeviceRegistry,
        placement: Placement | None = None,
        inventory: InventorySync | None = None,
    ) -> None:
        self._ledger, self._view, self._devices = ledger, view, devices
        self._placement, self._inventory = placement, inventory
        self._lock: AbstractContextManager[Any] = threading.Lock()

    def remove_host(self, name: str, operation_id: str) -> None:
        """Remove a host; a repetition does nothing. Raises NotFound, NotEmpty with what is left, Unavailable."""
        with self._alone():
            if self._ledger.removal.was_done(operation_id):
                return
            self._ledger.removal.check_host(name)
            self._leave(name)
            self._ledger.removal.remove_host(name, operation_id)
        LOG.info("Host %s is removed", name)

    def remove_pool(self, uuid: str, operation_id: str) -> None:
        """Remove a pool; a repetition does nothing. Raises NotFound, NotEmpty with what is left, Unavailable."""
        with self._alone():
            if self._ledger.removal.was_done(operation_id):
                return
            name = self._ledger.removal.check_pool(uuid)
            if self._devices.has(uuid, name):
                # It would be back with the next leader.
                left = "its device in [controller] pool_devices: take it out at every controller, and restart them"
                remains.refuse(f"pool {name}", [left])
            self._dissolve(uuid, name)
            self._ledger.removal.remove_pool(uuid, operation_id)
        LOG.info("Pool %s (%s) is removed", name, uuid)

    def leave_aggregate(self, host: str, provider: str, aggregate: str) -> bool:
        """Take the provider of a host that is gone out of an aggregate; False: the ledger knows the host by now."""
        with self._alone():
            if self._placement is None or host in self._view().hosts:
                return False
            return self._take_out(self._placement, provider, [aggregate])

    def remove_provider(self, uuid: str) -> bool:
        """Remove a provider that no pool is behind; False: one is by now. Raises NotEmpty while it is claimed of."""
        with self._alone():
            if self._placement is None or uuid in self._view().pools:
                return False
            if not self._placement.remove_provider(uuid):
                remains.refuse(f"provider {uuid}", self._claims(self._placement, uuid))
            return True

    def _alone(self) -> AbstractContextManager[Any]:
        """Keep other removals and the writer of Placement out; a repetition may come while the first is under way."""
        return self._inventory.removal() if self._inventory else self._lock

    def _leave(self, host: str) -> None:
        """Take a host's provider out of our aggregates, and our claim out of it.

        Raises NotEmpty while instances there claim our memory.
        """
        placement = self._placement
        provider = None if placement is None else placement.provider_by_name(host)
        if placement is None or provider is None:
            return
        pools = self._view().pools
        here = set(placement.allocations_of(provider) or ())
        held = {
            consumer
            for uuid in [*pools, lending.PROVIDER]
            for consumer, amounts in (placement.allocations_of(uuid) or {}).items()
            if amounts.get(RESOURCE_CLASS) or amounts.get(REMOTE_CLASS)
        }
        remains.refuse(f"host {host}", _named("claims in Placement of instances", here & held))
        for consumer in sorted(here & set(consumers(host))):
            placement.drop_claim(consumer)
        self._unclaim(placement, lambda key: key.host == host)
        self._take_out(placement, provider, [lending.AGGREGATE, *map(aggregate_uuid, pools)])

    def _dissolve(self, uuid: str, name: str) -> None:
        """Remove a pool's provider, and its aggregate, which is there while somebody is in it."""
        if self._placement is None:
            return
        self._unclaim(self._placement, lambda key: key.pool_uuid == uuid)
        remains.refuse(f"pool {name}", self._claims(self._placement, uuid))
        for provider in self._placement.members(aggregate_uuid(uuid)):
            self._take_out(self._placement, provider, [aggregate_uuid(uuid)])
        if not self._placement.remove_provider(uuid):
            remains.refuse(f"pool {name}", self._claims(self._placement, uuid) or ["claims in Placement"])

    def _unclaim(self, placement: Placement, ours: Callable[[HoldingKey], bool]) -> None:
        """Drop what is left of claims of host slices that nobody wants or has any more."""
        for key in filter(ours, self._view().holdings):
            for consumer in key.numbers(placement.allocations_of(key.pool_uuid) or ()).values():
                placement.drop_claim(consumer)

    @staticmethod
    def _take_out(placement: Placement, provider: str, aggregates: Iterable[str]) -> bool:
        """Take a provider out, written even if it is in none: a former leader may be about to join it still."""
        ours = set(aggregates)
        return placement.change_aggregates(provider, lambda present: present - ours, force=True)

    @staticmethod
    def _claims(placement: Placement, uuid: str) -> list[str]:
        return _named("claims in Placement of instances", placement.allocations_of(uuid) or ())


def _named(what: str, consumers: Iterable[str]) -> list[str]:
    found = sorted(consumers)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return [f"{what} {', '.join(found[:MOST_NAMED])}{more}"] if found else []
