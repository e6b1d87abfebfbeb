"""Members of an anti-affinity group on different pool devices: a device that fails takes one of them (Pond 4.2).

Where the members' pool memory is, Placement says: also of one whose slices are not attached yet.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import nova.conf
import nova.context
from nova.scheduler.client import report

from pondstack.domain.units import RESOURCE_CLASS
from pondstack_nova.scheduler.rack import Rack, has_room

CONF = nova.conf.CONF

HARD, SOFT = "anti-affinity", "soft-anti-affinity"
STRICT, PREFER, OFF = "strict", "prefer", "off"


@dataclass(frozen=True, slots=True)
class Spread:
    """How a request has to keep away from pools. `members`: how many others of its group have memory of each pool."""

    members: Mapping[str, int] = field(default_factory=dict)
    hard: bool = False
    most: int = 1
    """As many members a pool may have, like the group's max_server_per_host; of a hard policy."""

    def refuses(self, pool_uuid: str) -> bool:
        """Whether the request may not have memory of a pool."""
        return self.hard and self.members.get(pool_uuid, 0) >= self.most


NO_SPREAD = Spread()


def policy_of(spec: Any) -> str | None:
    """Return the anti-affinity policy that pools follow for a RequestSpec: hard, soft or None."""
    group = spec.instance_group if "instance_group" in spec else None
    policy = group.policy if group is not None and "policy" in group else None
    mode = CONF.pondstack.pool_anti_affinity
    if mode == OFF or policy not in (HARD, SOFT):
        return None
    return HARD if policy == HARD and mode == STRICT else SOFT


def look(spec: Any) -> Spread:
    """Ask Placement where the other members of a request's group have pool memory; leave it on the request.

    One call for each member, and none for requests without such a group. Raises what Nova's client of Placement raises.
    """
    spread = _look(spec)
    spec._pondstack_spread = spread
    return spread


def of(spec: Any) -> Spread:
    """Return what was left on a RequestSpec."""
    found: Spread = getattr(spec, "_pondstack_spread", NO_SPREAD)
    return found


def room_outside(rack: Rack | None, spread: Spread, need_mib: int) -> bool:
    """Say whether a pool that the request may use has room, as far as the scheduler knows."""
    if rack is None or not spread.members:
        return True  # whether there is room at all, the controller has judged
    return any(has_room(pool, need_mib) and not spread.refuses(pool.uuid) for pool in rack.snapshot.pools)


def _look(spec: Any) -> Spread:
    policy = policy_of(spec)
    if policy is None:
        return NO_SPREAD
    group, ctxt = spec.instance_group, nova.context.get_admin_context()
    client = report.report_client_singleton()
    members: Counter[str] = Counter()
    for member in set(group.members or ()) - {spec.instance_uuid}:
        held = client.get_allocs_for_consumer(ctxt, member)["allocations"]
        members.update(uuid for uuid, item in held.items() if RESOURCE_CLASS in item["resources"])
    rules = group.rules or {}
    return Spread(dict(members), policy == HARD, int(rules.get("max_server_per_host", 1)))
