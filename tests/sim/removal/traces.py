"""What must be nowhere, once the faults have stopped: traces of hosts and pools that were removed, and old fences."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pondstack.controller.pool.inventory import aggregate_uuid
from pondstack.domain.rack import RackView

if TYPE_CHECKING:
    from ..rack import Rack


def traces(rack: "Rack", view: RackView) -> list[str]:
    """Return what is left of what is gone."""
    operator = rack.operator
    if operator.at_work:
        return ["the operator is at work"]
    found = []
    for name in sorted(operator.lost):
        if name in view.hosts:
            operator.again(name)
            found.append(f"{name} was removed, and the ledger has it")
        found += [f"{item.item.name} is {name}'s" for item in view.slices if item.item.host == name]
    return [*found, *_members(rack, view)]


def fenced_again(rack: "Rack", view: RackView) -> Iterable[str]:
    """Return who is fenced although the operator has let it take part again, and has asked for nothing since."""
    for name in sorted(rack.operator.back):
        if name in view.hosts and view.hosts[name].fenced is not None:
            yield f"{name} is fenced ({view.hosts[name].fenced}), and was let take part again"


def _members(rack: "Rack", view: RackView) -> Iterable[str]:
    """Return who is in an aggregate of ours and should not be, or should be and is not."""
    ours = {aggregate_uuid(uuid) for uuid in rack.pool_uuids.values()}
    for uuid, provider in rack.placement.providers.items():
        reached = view.hosts[provider.name].pools if provider.name in view.hosts else {uuid} & set(view.pools)
        wanted = {aggregate_uuid(pool) for pool in reached}
        if provider.aggregates & ours != wanted:
            yield f"provider {provider.name} is in {sorted(provider.aggregates)}, it should be in {sorted(wanted)}"
