"""A guest's swap disk in remote memory (explicit swap, Zombieland 4.4): a disk beside its memory, best effort. Pure.

It is as large as the flavor says; its host's mirror has all of it, and lenders as much as there is. So nothing is
claimed from lenders: what is guaranteed is the mirror.
"""

from pondstack.domain.errors import BadSpec
from pondstack.domain.lending import DEFAULT_BUFFER_MIB

MAX_SWAP_PERCENT = 200
"""How large a swap disk may be, in percent of the guest's memory."""
SERIAL = "pond-swap"
"""What the guest finds its swap disk by: /dev/disk/by-id/virtio-pond-swap."""

SWAP_LEGAL = (
    f"a positive multiple of {DEFAULT_BUFFER_MIB} (MiB), at most [pondstack] max_swap_percent of the flavor's RAM"
)


def check_percent(memory_mib: int, swap_mib: int, max_swap_percent: int) -> None:
    """Raise BadSpec when a swap disk would be larger than an operator allows."""
    if swap_mib * 100 > memory_mib * max_swap_percent:
        most_mib = memory_mib * max_swap_percent // 100 // DEFAULT_BUFFER_MIB * DEFAULT_BUFFER_MIB
        raise BadSpec(
            f"pond:swap_mb={swap_mib} is more than {max_swap_percent} % of a flavor of {memory_mib} MiB, {most_mib} "
            f"MiB at most; it must be {SWAP_LEGAL}"
        )
