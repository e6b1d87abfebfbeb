"""What an allocation of pool memory is for: a guest, or the host itself. Pure.

All slices of one pool on one host are one memory node, and the kernel hands out its pages without knowing slices. So a
node is for guests or for tiering, never both: what the kernel demotes would land in guests' shares. A base slice only
keeps the node online; nobody's pages are meant for it, and it goes with either.
"""

from collections.abc import Iterable
from enum import StrEnum

from pondstack.domain.errors import PurposeConflict


class Purpose(StrEnum):
    """For what slices are held."""

    GUEST = "guest"
    """A guest's zNUMA node."""
    TIER = "tier"
    """The host's own kernel demotes cold pages to it."""
    BASE = "base"
    """It keeps the node online while guests, or tiers, come and go."""


EXCLUDED = {Purpose.GUEST: Purpose.TIER, Purpose.TIER: Purpose.GUEST}
"""What may not be on a node beside what."""


def check_node(wanted: Purpose, present: Iterable[Purpose], host: str, pool: str) -> None:
    """Raise PurposeConflict when slices for `wanted` may not come to where `present` are, of one pool on one host."""
    excluded = EXCLUDED.get(wanted)
    if excluded is None or excluded not in set(present):
        return
    if wanted is Purpose.TIER:
        raise PurposeConflict(
            f"host {host} has guests' slices of pool {pool}, so it can hold none there for tiering: what the kernel "
            "demotes would take the guests' shares; move these guests away, or choose another pool"
        )
    raise PurposeConflict(
        f"host {host} holds slices of pool {pool} for tiering, so guests get none there; start the guest elsewhere, or "
        f"give the tier back (`openstack memory host set --tier-slices 0 {host}`)"
    )
