"""What guests may take of a host's node never exceeds what is online there for them.

All slices of a device are one node of the host, and the kernel hands out its pages without knowing slices. So a guest's
share is an amount: each backend is as large as its slices, and the node has the slices of all of them.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from pondstack.domain.errors import DeviceFailed
from pondstack_agent.drivers.grant_records import extents_in


def by_allocation(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the MiB of each allocation."""
    sizes = ((record, sum(extent.count for extent in extents_in(record))) for record in records)
    return {record["allocation_uuid"]: count * record["slice_mib"] for record, count in sizes}


def check_disjoint(indexes: Set[int], others: Set[int], pool: str) -> None:
    """Raise DeviceFailed when slices of a grant are another allocation's already."""
    if both := sorted(indexes & others):
        raise DeviceFailed(
            f"slices {both} of pool {pool} are granted, and another allocation of this host has them; nothing was "
            "changed: run `openstack memory audit`"
        )


def check_node(node: int, held_mib: Mapping[str, int], online_mib: int) -> None:
    """Raise DeviceFailed when allocations (`held_mib`, by UUID) hold more than is online of a node."""
    held = sum(held_mib.values())
    if held > online_mib:
        raise DeviceFailed(
            f"node {node} of this host has {online_mib} MiB online, and allocations hold {held} MiB of it "
            f"({', '.join(sorted(held_mib))}): somebody else took memory of it offline; bring it online again "
            "(`daxctl online-memory`), or move these guests away"
        )
