"""What is measured of a guest from outside, by name (Pond 4.2): every metric has its unit in its name.

A metric of a guest as a whole has no node; of the guest's NUMA nodes, node 0 is local memory and the others are pool
memory. "Not available" is a sample without values and with a reason, never a figure.
"""

from enum import StrEnum


class Metric(StrEnum):
    """Metrics of one guest."""

    MEMORY_MIB = "memory_mib"
    """Memory that the guest was given."""
    UNTOUCHED_MIB = "untouched_mib"
    """Of it, what the guest has never read or written since it started, or has given back."""
    HUGE_MIB = "huge_mib"
    """Of what it touched, how much is in huge pages: the figure above is as blurred as they are large."""
    COMMITTED_MIB = "committed_mib"
    """What the guest's kernel has handed out, caches included, as its balloon driver tells."""
    HOT_MIB = "hot_mib"
    """Touched memory that was used since the scan before."""
    COLD_MIB = "cold_mib"
    """Touched memory that was not."""
    SCAN_SECONDS = "scan_seconds"
    """How long that scan took."""
    SCAN_CPU_SECONDS = "scan_cpu_seconds"
    """How much time of a CPU it took."""
    USED_CPUS = "used_cpus"
    """CPUs that its process keeps busy, QEMU's own threads included, on the average since the look before."""
    RESIDENT_MIB = "resident_mib"
    """Of a guest with remote memory: what its pager has in the host's memory."""
    EVICTED_MIB = "evicted_mib"
    """Of such a guest: what its pager has evicted."""
    INSTRUCTIONS_PER_CYCLE = "instructions_per_cycle"
    """Of the guest's vCPUs; no unit."""
    CACHE_MISSES_PER_KILO = "cache_misses_per_kilo"
    """Misses of the last cache per 1,000 instructions."""
    BACKEND_BOUND_PERCENT = "backend_bound_percent"
    """Top-down method, level 1: slots of the pipeline that wait for the back end."""
    FRONTEND_BOUND_PERCENT = "frontend_bound_percent"
    """Top-down method, level 1: slots for which no instruction was there."""
    BAD_SPECULATION_PERCENT = "bad_speculation_percent"
    """Top-down method, level 1: slots of instructions that were thrown away."""
    RETIRING_PERCENT = "retiring_percent"
    """Top-down method, level 1: slots of instructions that were completed."""
    MEMORY_BOUND_PERCENT = "memory_bound_percent"
    """Top-down method, level 2: slots that wait for loads and stores."""
    DRAM_BOUND_PERCENT = "dram_bound_percent"
    """Cycles in which nothing runs while a load waits that missed the last cache (top-down method, level 3)."""
    STORE_BOUND_PERCENT = "store_bound_percent"
    """Cycles in which little runs since the buffer of stores is full, and no load waits."""
    L2_MISSES_PER_KILO = "l2_misses_per_kilo"
    """Misses of the second cache, by data and code, per 1,000 instructions."""
    L3_MISS_LATENCY_CYCLES = "l3_miss_latency_cycles"
    """How long a load that missed the last cache waits on average: those under way (each cycle) by those begun."""
    L3_MISS_PARALLELISM = "l3_miss_parallelism"
    """Loads under way that missed the last cache, on the average of the cycles in which there is one; no unit."""
    DTLB_WALKS_PER_KILO = "dtlb_walks_per_kilo"
    """Page walks that loads needed, per 1,000 instructions."""
    READ_MIB_PER_CPU_SECOND = "read_mib_per_cpu_second"
    """What missed the last cache, in MiB of cache lines, per second that the vCPUs ran."""


class HostMetric(StrEnum):
    """Metrics of one host."""

    LOAD_PERCENT = "load_percent"
    """What of its CPUs' time was busy since the look before, in percent of all of them."""
    CPUS = "cpus"
    """How many CPUs it has online."""
    MEMORY_MIB = "memory_mib"
    """What its kernel has to hand out (MemTotal)."""
    FREE_MIB = "free_mib"
    """What can be had without swapping (MemAvailable)."""
    MOST_LENT_MIB = "most_lent_mib"
    """What it lends at most in all ([lending] most_mib); none where it has no bound."""


class Source(StrEnum):
    """Where a sample comes from. In this order, so that the greatest of several says what their sum is."""

    MEASURED = "measured"
    """Of a real guest."""
    SYNTHETIC = "synthetic"
    """Made up, for a guest without memory to measure. What is made of it says so, too."""
