"""How much of a server's memory goes to the pool: whole slices, as plain functions of plain numbers. Pure.

The planner compiles these very functions, so they take and return numbers only and call nothing of ours.
"""


def static_mib(memory_mib: int, percent: int, slice_mib: int) -> int:
    """Return the fixed share of the static policy, rounded down to whole slices."""
    return memory_mib * percent // 100 // slice_mib * slice_mib


def untouched_mib(share: float, memory_mib: int, slice_mib: int) -> int:
    """Return whole slices within a share of a server's memory; at least 1 MiB stays local."""
    most = (memory_mib - 1) // slice_mib * slice_mib
    return max(0, min(int(share * memory_mib) // slice_mib * slice_mib, most))


def kept_local_mib(memory_mib: int, min_local_percent: int, slice_mib: int) -> int:
    """Return what an insensitive server keeps from its host, since its CPUs need a node with memory."""
    return max(-(-memory_mib * min_local_percent // 100), slice_mib)


def capped_mib(wanted_mib: int, memory_mib: int, max_pool_percent: int, slice_mib: int) -> int:
    """Return whole slices within what is wanted and the flavor's cap; at least 1 MiB stays local."""
    most = memory_mib * max_pool_percent // 100
    return max(0, min(wanted_mib, most, memory_mib - 1)) // slice_mib * slice_mib
