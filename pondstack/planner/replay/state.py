"""What the compiled replay works on: arrays only. Times in whole seconds, vCPUs in thousandths, memory in MiB."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FOREVER = np.int64(2**62)
NEVER = np.int64(-1)
"""Release time of a slice that no server had yet."""
REJECTED = -1

Seconds = NDArray[np.int64]
Counts = NDArray[np.int32]


class Servers(NamedTuple):
    """Requests by start; `pool_mib`: what the policy gives each. `by_end`: their numbers by end."""

    start: Seconds
    end: Seconds
    by_end: Counts
    cpu: Counts
    memory_mib: Counts
    pool_mib: Counts


class Sockets(NamedTuple):
    """What is free, socket by socket; `pool`: the pool that it reaches, -1: none. `pooled_mib`: of its servers."""

    cpu_total: Counts
    cpu: Counts
    local_mib: Counts
    pooled_mib: Counts
    pool: Counts


class Pools(NamedTuple):
    """Pools with their slices that no server has, the first released first: a ring each, from `first` on.

    `free` counts them, `ready` those that are offline at their last host already. Slice n of the ring of a pool was
    released at `released` and is ready at `ready_at`.
    """

    total: Counts
    buffer: Counts
    first: Seconds
    head: Counts
    free: Counts
    ready: Counts
    released: Seconds
    ready_at: NDArray[np.float64]


class Rules(NamedTuple):
    """How servers are placed. `falls_back`: one that no host can give its pool memory to becomes all local."""

    cpu_weight: float
    ram_weight: float
    pool_weight: float
    slice_mib: int
    offline_seconds: float
    falls_back: bool


class Result(NamedTuple):
    """By server: its socket or REJECTED, the slices that it got, and the speed that its start asks for in MiB/s."""

    socket: Counts
    slices: Counts
    speed: NDArray[np.float32]


class Moments(NamedTuple):
    """By moment: vCPUs that are sold and MiB that are stranded (free where no vCPU is left for `least_cpu`)."""

    at: Seconds
    sold_cpu: Seconds
    stranded_mib: Seconds
