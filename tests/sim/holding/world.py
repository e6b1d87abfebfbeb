"""The operator who has hosts hold slices, and what must hold of them at each commit and after the last fault."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import oslo_messaging

from pondstack.domain.errors import PondError
from pondstack.domain.host_slices import HOST_PURPOSES, HoldingKey
from pondstack.domain.model import Allocation
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from tests.fixtures.memory_host import ATTACHMENTS

from .. import settings
from ..api import SimControllerAPI
from ..invariants import Violation
from ..plan import Step
from .plan import FORGET

if TYPE_CHECKING:
    from ..rack import Rack

PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.5


class HoldingWorld:
    """`asked`: whether the operator waits for an answer."""

    def __init__(self, rack: "Rack") -> None:
        self._rack = rack
        self.process = rack.scheduler.process("slice operator")
        self.at_work = 0
        self._known: set[str] = set()
        self._forgotten: set[str] = set()
        self._client = SimControllerAPI(
            rack.network, rack.moments, rack.scheduler, settings.CONTROLLER_CALL_SECONDS, self.process.rng
        )

    def start(self, step: Step) -> None:
        """Begin."""
        if step.kind == FORGET:
            self._forget(step)
            return
        self.at_work += 1
        self._rack.scheduler.spawn(self.process, self._guarded, step)

    def _guarded(self, step: Step) -> None:
        try:
            self._want(step)
        finally:
            self.at_work -= 1

    def _want(self, step: Step) -> None:
        """Ask until it is answered, for a while: a host may not have reported yet."""
        ends = self._rack.scheduler.now + PATIENCE_SECONDS
        operation_id = f"want-{step.at}-{step.target}"
        pool, purpose, count = (step.values[name] for name in ("pool", "purpose", "count"))
        wanted = {"pool_uuid": self._rack.pool_uuids[pool], "purpose": purpose, "count": count}
        while self._rack.scheduler.now < ends:
            try:
                self._client.set_host_slices(name=step.target, generation=None, operation_id=operation_id, **wanted)
                self._rack.scheduler.faults["host slices wanted"] += 1
                return
            except (PondError, oslo_messaging.MessagingTimeout) as error:
                self._rack.scheduler.note(f"OPERATOR is refused: {error}")
            self._rack.scheduler.sleep(PAUSE_SECONDS)

    def _forget(self, step: Step) -> None:
        """Drop all claims that Nova does not know."""
        provider = self._rack.placement.providers.get(self._rack.pool_uuids[step.target])
        if provider is None:
            return
        for key in self._keys():
            for consumer in key.numbers(list(provider.claims)).values():
                self._forgotten.add(consumer)
                del provider.claims[consumer]
                provider.generation += 1
                self._rack.scheduler.faults["claim of a host dropped"] += 1

    def _keys(self) -> Iterable[HoldingKey]:
        for host in self._rack.history.hosts:
            for pool in self._rack.pool_uuids.values():
                yield from (HoldingKey(host, pool, purpose) for purpose in HOST_PURPOSES)

    # At each commit

    def committed(self, view: RackView) -> None:
        """The ledger has changed: nodes are not mixed; what is new is wanted and claimed."""
        nodes: dict[tuple[str, str], set[Purpose]] = {}
        for aged in view.allocations.values():
            nodes.setdefault((aged.item.host, aged.item.pool_uuid), set()).add(aged.item.purpose)
        for node, purposes in nodes.items():
            if {Purpose.GUEST, Purpose.TIER} <= purposes:
                raise Violation("mixed_node", f"{node} has slices of guests and of tiers in the ledger")
        new = {uuid: aged.item for uuid, aged in view.allocations.items() if uuid not in self._known}
        self._known = set(view.allocations)
        for item in new.values():
            if item.purpose is not Purpose.GUEST:
                self._check_new(view, item)

    def _check_new(self, view: RackView, item: Allocation) -> None:
        if not _wanted(view, item):
            raise Violation("assigned_unwanted", f"{item.consumer_uuid} of {item.host} is assigned, nobody wants it")
        claims = self._rack.placement.providers[item.pool_uuid].claims
        if item.consumer_uuid not in claims and item.consumer_uuid not in self._forgotten:
            raise Violation("assigned_unclaimed", f"{item.consumer_uuid} of {item.host} is assigned without a claim")

    def disk_changed(self, name: str) -> None:
        """A host has another attachment: its nodes are not mixed, either."""
        found: dict[str, set[str]] = {}
        for record in self._rack.hosts[name].memory.folder(ATTACHMENTS).values():
            found.setdefault(record["pool_uuid"], set()).add(record.get("purpose", "guest"))
        for pool, purposes in found.items():
            if {"guest", "tier"} <= purposes:
                raise Violation("mixed_node", f"{name} has slices of {pool} of guests and of tiers")

    def unclaimed(self, consumer: str) -> None:
        """The leader drops a claim: nobody has its slice, or it is wanted again by now."""
        view = self._rack.view()
        for aged in view.allocations.values():
            if aged.item.consumer_uuid == consumer and not _wanted(view, aged.item):
                raise Violation("unclaimed_too_soon", f"{consumer} has a slice and no claim of it any more")

    # Once the faults have stopped

    def allocations(self, view: RackView, host: str | None = None) -> set[str]:
        """Return the allocations of hosts themselves, or of one of them."""
        items = (aged.item for aged in view.allocations.values())
        return {i.uuid for i in items if i.purpose is not Purpose.GUEST and host in (None, i.host)}

    def disagreements(self, view: RackView) -> Iterable[str]:
        """Return where hosts do not hold what they are to hold, without a reason, or more than that."""
        if self.at_work:
            yield "the operator is at work"
        for key in self._keys():
            yield from self._of_key(view, key)

    def _of_key(self, view: RackView, key: HoldingKey) -> Iterable[str]:
        holding, provider = view.holdings.get(key), self._rack.placement.providers[key.pool_uuid]
        mine = [aged for aged in view.allocations.values() if _key(aged.item) == key]
        held = key.numbers(aged.item.consumer_uuid for aged in mine)
        claimed, about = key.numbers(provider.claims), f"{key.purpose} slices of {key.host}"
        wanted = range(holding.wanted if holding else 0)
        if set(held) - set(wanted) or set(claimed) - set(wanted):
            yield f"{about}: {sorted(held)} held, {sorted(claimed)} claimed, {len(wanted)} wanted"
        if set(held) - set(claimed) or any(aged.unclaimed_seconds is not None for aged in mine):
            yield f"{about}: {sorted(held)} held, {sorted(claimed)} claimed"
        if len(held) < len(wanted) and not (holding and holding.reason):
            yield f"{about}: {sorted(held)} held, {len(wanted)} wanted, without a reason"
        if holding is not None and not holding.wanted:
            yield f"{about}: nothing is wanted or left, and the ledger keeps it"
        disk = self._rack.hosts[key.host].memory.folder(ATTACHMENTS)
        for aged in mine:
            states = {item.item.state for item in view.slices if item.item.allocation_uuid == aged.item.uuid}
            if aged.item.uuid not in disk or states != {SliceState.ONLINE}:
                yield f"{about}: allocation {aged.item.uuid} is {states}"


def _key(item: Allocation) -> HoldingKey:
    return HoldingKey(item.host, item.pool_uuid, item.purpose)


def _wanted(view: RackView, item: Allocation) -> bool:
    key = _key(item)
    holding = view.holdings.get(key)
    [number] = key.numbers([item.consumer_uuid]) or [-1]
    return holding is not None and 0 <= number < holding.wanted
