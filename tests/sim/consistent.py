"""What must hold once the faults have stopped: everybody tells the same, and nothing is left over."""

from typing import TYPE_CHECKING

from pondstack.controller.pool.inventory import wanted_inventory
from pondstack.domain.causes import Cause
from pondstack.domain.rack import RackView
from pondstack.domain.states import SliceState
from tests.fixtures.memory_host import ATTACHMENTS

from .removal.traces import fenced_again, traces

if TYPE_CHECKING:
    from .rack import Rack


def disagreements(rack: "Rack") -> list[str]:
    """Return what is not yet consistent; an empty list is the goal."""
    leaders = [node for node in rack.nodes.values() if node.leads]
    if len(leaders) != 1:
        return [f"{len(leaders)} controllers lead"]
    if rack.nova.running_operations:
        return ["Nova is at work"]
    view = rack.view()
    found = [*_slices(rack, view), *_instances(rack, view), *_placement(rack, view), *fenced_again(rack, view)]
    if rack.history.removal:
        found += traces(rack, view)
    if rack.lent is not None:
        found += rack.lent.disagreements()
    if rack.guests is not None:
        found += rack.guests.disagreements()
    if rack.plans is not None:
        found += rack.plans.disagreements()
    if rack.holding is not None:
        found += rack.holding.disagreements(view)
    for name, host in rack.hosts.items():
        own = rack.holding.allocations(view, name) if rack.holding else set()
        expected = own | {i.held.allocation_uuid for i in rack.nova.instances.values() if i.held and i.host == name}
        present = set(host.memory.folder(ATTACHMENTS))
        if present - expected:
            found.append(f"{name} holds {sorted(present - expected)} for nobody")
    return found


def _slices(rack: "Rack", view: RackView) -> list[str]:
    found = []
    held = {i.held.allocation_uuid for i in rack.nova.instances.values() if i.held}
    held |= rack.holding.allocations(view) if rack.holding else set()
    for uuid in view.allocations:
        if uuid not in held:
            found.append(f"allocation {uuid} is nobody's")
    for aged in view.slices:
        item = aged.item
        entry = rack.watch.devices[item.pool_uuid].table.get(item.index)
        about = f"slice {item.index} is {item.state} ({item.reason}), the device says {entry}"
        if item.cause is Cause.SANITIZE_FAILED:
            continue
        if item.state not in (SliceState.FREE, SliceState.ONLINE) or (item.state is SliceState.FREE) != (entry is None):
            found.append(about)
    return found


def _instances(rack: "Rack", view: RackView) -> list[str]:
    found = []
    for instance in rack.nova.instances.values():
        if instance.held is None:
            found.append(f"{instance.name} has no memory")
        elif instance.held.allocation_uuid not in view.allocations and (
            not instance.off or (instance.host, instance.name) in rack.watch.promised
        ):
            found.append(f"{instance.name} runs on an allocation that the ledger does not know")
    return found


def _placement(rack: "Rack", view: RackView) -> list[str]:
    found = []
    for name, uuid in rack.pool_uuids.items():
        if uuid not in view.pools:
            found.append(f"the ledger has no {name}")
            continue
        provider = rack.placement.providers.get(uuid)
        wanted = wanted_inventory(view, uuid)
        if provider is None or provider.inventory != wanted:
            found.append(f"Placement has {provider and provider.inventory} for {name}, it should be {wanted}")
        elif provider.used > wanted.total:
            found.append(f"{provider.used} MiB of {name} are claimed of {wanted.total}")
    return found
