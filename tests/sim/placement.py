"""Placement in memory: providers with generations, inventories that bound claims, consumers on hosts and pools.

The calls are those of pondstack.clients.placement.Placement that the controller makes, and Nova's claims.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pondstack.clients.placement import Inventory
from pondstack.domain.admission import MEMORY_CLASS
from pondstack.domain.errors import Unavailable
from pondstack.domain.units import RESOURCE_CLASS

from .fault_links import Moments
from .kernel import Scheduler

TRIES = 8


@dataclass(slots=True)
class Provider:
    """One resource provider. `claims`: amounts by consumer.

    `records`: the inventories of a host, where Nova places guests on it; `memory`: what is claimed of its MEMORY_MB.
    """

    name: str
    generation: int = 0
    inventory: Inventory | None = None
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    claims: dict[str, int] = field(default_factory=dict)
    resource_class: str = RESOURCE_CLASS
    records: dict[str, Inventory] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def used(self) -> int:
        """What its consumers hold."""
        return sum(self.claims.values())


class Placement:
    """One Placement. `down_until`: it does not answer before; `changed` is called after each change.

    `fences_aggregates`: their writers check the epoch, as production's do. Only histories with removals need it; the
    others keep the turns that their seeds had before.
    """

    def __init__(self, scheduler: Scheduler, moments: Moments, hosts: tuple[str, ...]) -> None:
        self._scheduler = scheduler
        self._moments = moments
        self.providers: dict[str, Provider] = {
            f"provider-{name}": Provider(name, resource_class="MEMORY_MB") for name in hosts
        }
        self.down_until = 0.0
        self.fences_aggregates = False
        self.changed: Callable[[], None] = lambda: None
        self.wrote_inventory: Callable[[str, int], None] = lambda _uuid, _epoch: None
        self.unclaimed: Callable[[str], None] = lambda _consumer: None

    def _answer(self) -> None:
        self._moments.pass_by("rpc")
        if self.down_until > self._scheduler.now:
            self._scheduler.faults["placement down"] += 1
            raise Unavailable("Placement does not answer")

    def _existing(self, uuid: str) -> "Provider":
        """Answer about a provider; Placement's 404 for one that somebody has deleted is a refusal to the client."""
        self._answer()
        if uuid not in self.providers:
            raise Unavailable(f"Placement refused: no resource provider {uuid}")
        return self.providers[uuid]

    # The controller's calls

    def provider_by_name(self, name: str) -> str | None:
        """Return the UUID of the provider with this name."""
        self._answer()
        return next((uuid for uuid, provider in self.providers.items() if provider.name == name), None)

    def host_provider(self, name: str) -> str | None:
        """Return the UUID of a host's provider; they are all whole."""
        return self.provider_by_name(name)

    def ensure_provider(self, uuid: str, name: str) -> None:
        """Make the provider, or give it the name."""
        self._answer()
        self.providers.setdefault(uuid, Provider(name)).name = name

    def ensure_resource_class(self, name: str) -> None:
        """Make a resource class."""

    def ensure_trait(self, uuid: str, trait: str) -> None:
        """Add a trait."""
        self._existing(uuid).traits.add(trait)

    def change_aggregates(
        self,
        uuid: str,
        decide: Callable[[set[str]], set[str]],
        *,
        still: Callable[[], object] = lambda: None,
        force: bool = False,
    ) -> bool:
        """Set a provider's aggregates."""
        for _ in range(TRIES):
            provider = self._existing(uuid)
            generation, present = provider.generation, set(provider.aggregates)
            wanted = decide(present)
            if wanted == present and not force:
                return False
            if self.fences_aggregates:
                still()
            provider = self._existing(uuid)
            if provider.generation == generation:
                provider.aggregates = wanted
                provider.generation += 1
                return wanted != present
        raise Unavailable("Placement: somebody else keeps changing it")

    def members(self, aggregate: str) -> dict[str, str]:
        """Return the names of the providers that are in an aggregate, by UUID."""
        self._answer()
        return {uuid: item.name for uuid, item in self.providers.items() if aggregate in item.aggregates}

    def with_trait(self, trait: str) -> dict[str, str]:
        """Return the names of the providers that have a trait, by UUID."""
        self._answer()
        return {uuid: item.name for uuid, item in self.providers.items() if trait in item.traits}

    def remove_provider(self, uuid: str) -> bool:
        """Delete a provider; False: consumers hold something of it."""
        self._answer()
        if uuid in self.providers and self.providers[uuid].claims:
            return False
        self.providers.pop(uuid, None)
        return True

    def inventory(self, uuid: str, resource_class: str) -> Inventory | None:
        """Return one inventory record."""
        self._answer()
        provider = self.providers.get(uuid)
        return provider.inventory if provider is not None and provider.resource_class == resource_class else None

    def for_epoch(self, epoch: int) -> "PlacementOf":
        """Return this Placement as the leader of an epoch reaches it."""
        return PlacementOf(self, epoch)

    def set_inventory(
        self,
        uuid: str,
        resource_class: str,
        wanted: Inventory,
        *,
        still: Callable[[], object] = lambda: None,
        force: bool = False,
        epoch: int = 0,
    ) -> bool:
        """Write one inventory record; returns whether it was another before."""
        for _ in range(TRIES):
            provider = self._existing(uuid)
            generation = provider.generation
            right = provider.inventory == wanted
            if right and not force:
                return False
            still()
            provider = self._existing(uuid)
            if provider.generation == generation:
                provider.inventory, provider.resource_class = wanted, resource_class
                provider.generation += 1
                self.wrote_inventory(uuid, epoch)
                self.changed()
                return not right
        raise Unavailable("Placement: somebody else keeps changing it")

    def allocations_of(self, uuid: str) -> dict[str, dict[str, int]] | None:
        """Return what each consumer holds of one provider."""
        self._answer()
        provider = self.providers.get(uuid)
        if provider is None:
            return None
        held = {consumer: {provider.resource_class: amount} for consumer, amount in provider.claims.items()}
        return held | {consumer: {MEMORY_CLASS: amount} for consumer, amount in provider.memory.items()}

    def held_by(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what one consumer holds."""
        self._answer()
        return {
            uuid: {provider.resource_class: provider.claims[consumer]}
            for uuid, provider in self.providers.items()
            if consumer in provider.claims
        }

    def inventories(self, uuid: str) -> dict[str, Inventory]:
        """Return all inventory records of a host."""
        self._answer()
        return dict(self.providers[uuid].records) if uuid in self.providers else {}

    def candidates(self, amounts: Mapping[str, int], traits: Iterable[str]) -> set[str]:
        """Return the hosts of which these amounts can be claimed now; no host has a trait here."""
        self._answer()
        return {uuid for uuid in self.providers if not list(traits) and self._admits(uuid, amounts)}

    def _admits(self, uuid: str, amounts: Mapping[str, int]) -> bool:
        provider = self.providers[uuid]
        used = {MEMORY_CLASS: sum(provider.memory.values())}
        free = {name: (item.total - item.reserved) * item.allocation_ratio for name, item in provider.records.items()}
        return all(used.get(name, 0) + amount <= free.get(name, 0.0) for name, amount in amounts.items())

    def claim(
        self,
        uuid: str,
        resource_class: str,
        amounts: Mapping[str, int],
        *,
        still: Callable[[], object] = lambda: None,
    ) -> bool:
        """Have consumers claim memory of a host, or slices of a pool, all or none."""
        if resource_class == RESOURCE_CLASS:
            still()
            self._answer()
            return self._claim_slices(self.providers.get(uuid), amounts)
        assert resource_class == MEMORY_CLASS
        for _ in range(TRIES):
            provider = self._existing(uuid)
            before = {consumer: provider.memory.get(consumer) for consumer in amounts}
            still()
            provider = self._existing(uuid)
            if before == {consumer: provider.memory.get(consumer) for consumer in amounts}:
                return self.claim_memory(provider, amounts)
        raise Unavailable("Placement: somebody else keeps changing it")

    def _claim_slices(self, provider: Provider | None, amounts: Mapping[str, int]) -> bool:
        if provider is None or provider.inventory is None:
            raise Unavailable("Placement does not have the pool yet")
        others = sum(amount for consumer, amount in provider.claims.items() if consumer not in amounts)
        if others + sum(amounts.values()) > provider.inventory.total - provider.inventory.reserved:
            return False
        provider.claims.update(amounts)
        provider.generation += 1
        self.changed()
        return True

    def claim_memory(self, provider: Provider, amounts: Mapping[str, int]) -> bool:
        """Put claims in the place of those that the same consumers had, all or none."""
        dram = provider.records.get(MEMORY_CLASS)
        others = sum(amount for consumer, amount in provider.memory.items() if consumer not in amounts)
        if dram is None or max(amounts.values()) > dram.max_unit:
            return False
        if others + sum(amounts.values()) > (dram.total - dram.reserved) * dram.allocation_ratio:
            return False
        provider.memory.update(amounts)
        provider.generation += 1
        self.changed()
        return True

    def drop_claim(self, consumer: str) -> None:
        """Drop what a consumer of ours claims."""
        self._answer()
        for provider in self.providers.values():
            if provider.claims.pop(consumer, None) is not None:
                provider.generation += 1
                self.unclaimed(consumer)
            if provider.memory.pop(consumer, None) is not None:
                provider.generation += 1
        self.changed()

    # Nova's

    def claim_lent(self, consumer: str, host: str, provider: str, mib: int) -> None:
        """Claim lent memory for a consumer on a host. Raises Unavailable."""
        self._answer()
        self.providers[provider].claims[consumer] = mib
        self.providers[f"provider-{host}"].claims[consumer] = 1

    def move_lent(self, consumer: str, aside: str, host: str, provider: str) -> None:
        """Put a consumer's claim on lent memory aside for another name and claim on `host`. Raises Unavailable."""
        self._answer()
        mib = self.providers[provider].claims[consumer]
        for each in self.providers.values():
            if consumer in each.claims:
                each.claims[aside] = each.claims.pop(consumer)
        self.providers[provider].claims[consumer] = mib
        self.providers[f"provider-{host}"].claims[consumer] = 1

    def claim_pool(self, consumer: str, host: str, pool: str, mib: int) -> bool:
        """Claim pool memory for a consumer on a host; False when the inventory has no room. Raises Unavailable."""
        self._answer()
        return self._put(consumer, host, pool, mib)

    def _put(self, consumer: str, host: str, pool: str, mib: int) -> bool:
        provider = self.providers.get(pool)
        if provider is None or provider.inventory is None:
            return False
        if provider.used + mib > provider.inventory.total - provider.inventory.reserved:
            return False
        provider.claims[consumer] = mib
        provider.generation += 1
        self.providers[f"provider-{host}"].claims[consumer] = mib  # a guest has as much local memory
        self.changed()
        return True

    def move(self, consumer: str, aside: str, host: str, pool: str, mib: int) -> bool:
        """Put a consumer's claim aside for another name and claim for it on `host`: a live migration's start."""
        self._answer()
        before = {uuid: dict(provider.claims) for uuid, provider in self.providers.items()}
        for provider in self.providers.values():
            if consumer in provider.claims:
                provider.claims[aside] = provider.claims.pop(consumer)
        if self._put(consumer, host, pool, mib):
            return True
        for uuid, claims in before.items():
            self.providers[uuid].claims = claims
        return False

    def put_back(self, consumer: str, aside: str) -> None:
        """Undo a move."""
        self._answer()
        self._drop(consumer)
        for provider in self.providers.values():
            if aside in provider.claims:
                provider.claims[consumer] = provider.claims.pop(aside)
                provider.generation += 1
        self.changed()

    def drop(self, consumer: str) -> None:
        """Drop all claims of a consumer."""
        self._answer()
        self._drop(consumer)

    def _drop(self, consumer: str) -> None:
        for provider in self.providers.values():
            if provider.claims.pop(consumer, None) is not None:
                provider.generation += 1
        self.changed()


class PlacementOf:
    """Placement as one leader reaches it; its inventories are told from those of others."""

    def __init__(self, placement: Placement, epoch: int) -> None:
        self._placement = placement
        self._epoch = epoch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._placement, name)

    def set_inventory(self, *arguments: Any, **named: Any) -> bool:
        """Write one inventory record."""
        return self._placement.set_inventory(*arguments, epoch=self._epoch, **named)
