"""The rack at one moment, as the reconciler's rules and the scheduler see it; ages by the database's clock. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pondstack.domain.free_buffer import UNSIZED, FreeBuffer
from pondstack.domain.host_sleep import SILENT, HostSleep
from pondstack.domain.host_slices import Holding, HoldingKey
from pondstack.domain.lent_memory import LentMemory
from pondstack.domain.model import Allocation, Pool, Slice
from pondstack.domain.purpose import Purpose
from pondstack.domain.transitions import LedgerView


@dataclass(frozen=True, slots=True)
class PoolDetail:
    """A pool with what a host driver needs to reach its device. `failures` grows whenever its state changes."""

    pool: Pool
    driver: str
    serial: str
    address: Mapping[str, Any]
    hosts: tuple[str, ...] = ()
    failures: int = 0
    free_buffer: FreeBuffer = UNSIZED


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
    `sequence`: the report's own number. `lending`, `borrowed`: as pondstack.rpc.wire.Report has them.
    `generation`: counts what operators changed of it, fences and what it is to hold included.
    `sleep`: the one that goes on.
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
    lending: Mapping[str, Any] | None = None
    borrowed: Mapping[str, Any] | None = None
    generation: int = 0
    sleep: HostSleep | None = None

    @property
    def is_expected_silent(self) -> bool:
        """Whether nobody wonders that its agent does not answer: it is asleep, or on its way there or back."""
        return self.sleep is not None and self.sleep.state in SILENT


@dataclass(frozen=True, slots=True)
class RackView:
    """Pools, slices, allocations, hosts and what they are to hold for themselves. `lent`: only where asked for."""

    pools: Mapping[str, PoolDetail] = field(default_factory=dict)
    slices: tuple[AgedSlice, ...] = ()
    allocations: Mapping[str, AgedAllocation] = field(default_factory=dict)
    hosts: Mapping[str, HostReport] = field(default_factory=dict)
    lent: LentMemory = field(default_factory=LentMemory)
    holdings: Mapping[HoldingKey, Holding] = field(default_factory=dict)

    def tier_nodes(self) -> set[tuple[str, str]]:
        """Return the (host, pool) whose slices are for tiering, so that no guest gets any there.

        What is wanted counts, too: guests that come meanwhile would have it wait for ever.
        """
        found = {
            (key.host, key.pool_uuid)
            for key, item in self.holdings.items()
            if key.purpose is Purpose.TIER and item.wanted
        }
        items = (aged.item for aged in self.allocations.values())
        return found | {(item.host, item.pool_uuid) for item in items if item.purpose is Purpose.TIER}

    def guest_pools(self, host: str) -> tuple[str, ...]:
        """Return the pools that a host reaches and that guests may use there."""
        tiers = self.tier_nodes()
        return tuple(uuid for uuid in self.hosts[host].pools if (host, uuid) not in tiers)

    def ledger(self) -> LedgerView:
        """Return what pondstack.domain.transitions judges."""
        return LedgerView(
            {uuid: detail.pool for uuid, detail in self.pools.items()},
            tuple(aged.item for aged in self.slices),
            {uuid: aged.item for uuid, aged in self.allocations.items()},
        )
