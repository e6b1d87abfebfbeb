"""What nova-compute tells nova-scheduler of a host, in the statistics of its compute node."""

from typing import Any

NO_POOL_MEMORY = "pondstack_no_pool_memory"
"""Why no guest with pool memory can start there; not told where it can."""
BY_CLAIM = "pondstack_by_claim"
"""Told by hosts that decide by a guest's claim whether it has pool memory; the former release looks at its flavor."""
LEAVES_OUT = "pondstack_leaves_out"
"""Told by hosts whose QEMU leaves out of a live migration what is handed over; not with post-copy, nor formerly."""


def refusal(host_state: Any) -> str | None:
    """Return why a host (HostState) can have no guest with pool memory, by its own word; None when it can."""
    told: str | None = (getattr(host_state, "stats", None) or {}).get(NO_POOL_MEMORY)
    return told


def by_claim(host_state: Any) -> bool:
    """Say whether a host (HostState) can have guests of flavors without `pond:` specs with pool memory."""
    return BY_CLAIM in (getattr(host_state, "stats", None) or {})


def leaves_out(node: Any) -> bool:
    """Say whether slices of guests that leave a host (ComputeNode) live may be handed over."""
    return LEAVES_OUT in (getattr(node, "stats", None) or {})
