"""Units: every figure of memory is in MiB, every count of pool memory in slices."""

KIB = 1024
MIB = 1024 * KIB
GIB_MIB = 1024

DEFAULT_SLICE_MIB = GIB_MIB
"""One slice of a pool device (Pond section 4.1: 1 GB slices)."""

RESOURCE_CLASS = "CUSTOM_POND_MEMORY_MB"
"""Placement resource class of pool memory, in MiB, with step_size = one slice."""

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"

COMPUTE_TRAIT = "COMPUTE_NODE"
"""Nova gives it to the provider of each compute host, at the end of its first update."""


def slices_for(mib: int, slice_mib: int = DEFAULT_SLICE_MIB) -> int:
    """Return how many slices `mib` MiB are.

    Raises ValueError when `mib` is negative or no multiple of `slice_mib`.
    """
    if mib < 0 or mib % slice_mib:
        raise ValueError(f"{mib} MiB is not a multiple of the slice size {slice_mib} MiB")
    return mib // slice_mib
