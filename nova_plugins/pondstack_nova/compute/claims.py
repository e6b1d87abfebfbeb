"""What a guest may use of a pool on this host, read from its Placement allocations. Pure.

Nothing else says whether a guest has pool memory: an operator may pool guests of flavors without `pond:` specs, and one
with such specs may be all local.

The pool's share is not read off the pool's own allocation: a sharing provider is kept once while an evacuated instance
holds two hosts, so only the host's own MEMORY_MB says how the guest is split *here*. What it has as remote memory is
the same on each host, so that can be read off the allocation of the lenders' provider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pondstack.domain.errors import Conflict
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.model import Extent
from pondstack.domain.units import RESOURCE_CLASS


@dataclass(frozen=True, slots=True)
class PoolClaim:
    """Pool memory that Placement grants a guest on one host; `pools`: UUIDs of where it may come from, best first."""

    pools: tuple[str, ...]
    pool_mib: int


class Unclaimed(Conflict):
    """Placement holds neither memory of this host nor pool memory for a guest: nobody says how it is split."""


def claim_of(
    allocations: Mapping[str, Any], provider_uuid: str, memory_mib: int, *, own_amount: bool = False
) -> PoolClaim | None:
    """Return the claim of a guest with `memory_mib` MiB in all on the host `provider_uuid`, None when it is all local.

    `allocations` is Nova's form: {provider uuid: {"resources": {class: amount}}}. `own_amount`: its flavor sets the
    MEMORY_MB itself, so that this is no split. Raises Unclaimed, and Conflict when Placement holds nothing for the
    guest on this host, or amounts that do not add up.
    """
    resources = {uuid: held.get("resources", {}) for uuid, held in allocations.items()}
    held = {uuid: int(has[RESOURCE_CLASS]) for uuid, has in resources.items() if int(has.get(RESOURCE_CLASS, 0)) > 0}
    if not held and own_amount:
        return None
    if "MEMORY_MB" not in resources.get(provider_uuid, {}):
        raise (Conflict if held else Unclaimed)(
            f"Placement holds no MEMORY_MB of this host ({provider_uuid}) for the guest; see `openstack "
            f"resource provider allocation show`"
        )
    local_mib = int(resources[provider_uuid]["MEMORY_MB"])
    remote_mib = sum(int(has.get(REMOTE_CLASS, 0)) for has in resources.values())
    pool_mib = memory_mib - local_mib - remote_mib
    if pool_mib == 0 or (pool_mib < 0 and not held):
        return None
    pools = sorted((uuid for uuid, mib in held.items() if mib >= pool_mib), key=lambda uuid: (held[uuid], uuid))
    if pool_mib < 0 or not pools:
        raise Conflict(
            f"the guest has {memory_mib} MiB, but Placement holds {local_mib} MiB of this host, {remote_mib} MiB "
            f"of remote memory and {sum(held.values())} MiB of pool memory for it; schedule it again, without forcing "
            f"a host"
        )
    return PoolClaim(pools=tuple(pools), pool_mib=pool_mib)


def shape_of(extents: Sequence[Extent]) -> tuple[int, ...]:
    """Return slices per extent: the guest's CPU-less nodes, which a live migration must keep."""
    return tuple(extent.count for extent in extents)


def check_move(source_mib: int | None, claim: PoolClaim | None) -> None:
    """Raise Conflict when a running guest cannot move live to a host where it has this claim.

    A running guest's NUMA nodes cannot change: the destination gives it exactly as much pool memory, or none. What it
    claims no pool memory for is local memory there, behind the same nodes.
    """
    if claim is None:
        return
    if source_mib is None:
        raise Conflict(
            f"the running guest has no pool memory, but the destination claims {claim.pool_mib} MiB of it for it; "
            f"migrate it cold, or restart it first"
        )
    if source_mib != claim.pool_mib:
        raise Conflict(
            f"the running guest has {source_mib} MiB of pool memory, but the destination claims {claim.pool_mib} MiB "
            f"for it; let the scheduler choose the host while pondstack-controller answers, or migrate it cold"
        )
