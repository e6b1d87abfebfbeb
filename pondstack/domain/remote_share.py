"""The shares of a guest's memory that are not local: borrowed from other hosts (Zombieland 4.5), on disk alone. Pure.

A guest of M MiB with P MiB of pool memory and R MiB of remote memory has one NUMA node with CPUs, of M - P MiB. Of that
node M - P - R MiB may be in its host's own memory at once; the rest is with lenders. Its host has a mirror of the whole
node, so that a lender which fails costs nothing but time. A disk share of D MiB more is in the mirror alone: what the
guest has not used for longest (the DRAM+SSD hybrid pool, whose overcommit ratio is M / (M - D)).
"""

from dataclasses import dataclass

from pondstack.domain.errors import BadSpec
from pondstack.domain.lending import DEFAULT_BUFFER_MIB

MIRROR_CLASS = "CUSTOM_POND_MIRROR_MB"
"""Placement resource class of a host's room for mirrors, in MiB; on the host's own provider."""
MAX_REMOTE_PERCENT = 50
"""How much of a guest may be remote (Zombieland, section 4.5: beyond half of it guests slow down too much)."""
LEAST_LOCAL_MIB = 64
"""What a guest with remote memory needs of its host's own memory at least."""

DISK_LEGAL = (
    f"a positive multiple of {DEFAULT_BUFFER_MIB} (MiB), beside pond:remote_mb without pond:policy; both together at "
    f"most [pondstack] max_remote_percent of the flavor's RAM, so that {LEAST_LOCAL_MIB} MiB of local memory are left"
)
REMOTE_LEGAL = (
    f"a positive multiple of {DEFAULT_BUFFER_MIB} (MiB), at most [pondstack] max_remote_percent of the flavor's RAM, "
    f"that leaves {LEAST_LOCAL_MIB} MiB of local memory; not with policy local"
)


@dataclass(frozen=True, slots=True)
class Shares:
    """Where a guest's memory is, in MiB. `local_mib`: at most so much of its first node is in its host's memory.

    `swap_mib`: of its swap disk, which is none of its memory, and has a mirror as well. `disk_mib`: of its first node,
    what neither its host's memory nor a lender has room for.
    """

    local_mib: int
    pool_mib: int
    remote_mib: int
    swap_mib: int = 0
    disk_mib: int = 0

    @property
    def node_mib(self) -> int:
        """Return the size of its first node, and of that one's mirror."""
        return self.local_mib + self.remote_mib + self.disk_mib

    @property
    def mirror_mib(self) -> int:
        """Return the size of all of its mirrors, 0 when it needs none."""
        return (self.node_mib if self.remote_mib else 0) + self.swap_mib


def shares(memory_mib: int, pool_mib: int, remote_mib: int, swap_mib: int = 0, disk_mib: int = 0) -> Shares:
    """Return how a guest is shared out; raises BadSpec when it leaves too little local memory."""
    local_mib = memory_mib - pool_mib - remote_mib - disk_mib
    if remote_mib and local_mib < LEAST_LOCAL_MIB:
        besides = f" beside {pool_mib} MiB of pool memory" if pool_mib else ""
        besides += f" beside {disk_mib} MiB on disk" if disk_mib else ""
        raise BadSpec(
            f"pond:remote_mb={remote_mib}{besides} leaves {local_mib} MiB of local memory in a flavor of {memory_mib} "
            f"MiB; it must be {REMOTE_LEGAL}"
        )
    return Shares(local_mib, pool_mib, remote_mib, swap_mib, disk_mib)


def check_percent(memory_mib: int, remote_mib: int, max_remote_percent: int, disk_mib: int = 0) -> None:
    """Raise BadSpec when more of a guest would be remote, or on disk, than an operator allows."""
    if (remote_mib + disk_mib) * 100 > memory_mib * max_remote_percent:
        most_mib = memory_mib * max_remote_percent // 100 // DEFAULT_BUFFER_MIB * DEFAULT_BUFFER_MIB
        disk = f" and pond:disk_mb={disk_mib} are" if disk_mib else " is"
        raise BadSpec(
            f"pond:remote_mb={remote_mib}{disk} more than {max_remote_percent} % of a flavor of {memory_mib} MiB, "
            f"{most_mib} MiB at most; it must be {REMOTE_LEGAL}"
        )


def most_pool_percent(memory_mib: int, remote_mib: int, max_pool_percent: int) -> int:
    """Return how much of a guest may be pool memory, in percent, so that beside its remote share enough is local."""
    if not remote_mib:
        return max_pool_percent
    return max(0, min(max_pool_percent, (memory_mib - remote_mib - LEAST_LOCAL_MIB) * 100 // memory_mib))
