"""What the compiled replay works on: arrays only. Times in whole seconds, vCPUs in thousandths, memory in MiB."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FOREVER = np.int64(2**62)
NEVER = np.int64(-1)
"""Release time of a slice that no server had yet."""
REJECTED = -1
INTERRUPTED = -2
"""The socket of a server that a failure has ended, until it is placed again."""

Seconds = NDArray[np.int64]
Counts = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Servers(NamedTuple):
    """Requests by start; `pool_mib`: what the policy gives each. `by_end`: their numbers by end."""

    start: Seconds
    end: Seconds
    by_end: Counts
    cpu: Counts
    memory_mib: Counts
    pool_mib: Counts


class Sockets(NamedTuple):
    """What is free, socket by socket; `pool`: the pool that it reaches, -1: none. `pooled_mib`: of its servers.

    `out`: those whose host has failed and is not repaired yet.
    """

    cpu_total: Counts
    cpu: Counts
    local_mib: Counts
    pooled_mib: Counts
    pool: Counts
    out: Flags


class Pools(NamedTuple):
    """Pools with their slices that no server has, the first released first: a ring each, from `first` on.

    `free` counts them, `ready` those that are offline at their last host already. Slice n of the ring of a pool was
    released at `released` and is ready at `ready_at`. `out`: pools whose device has failed and is not repaired yet.
    """

    total: Counts
    buffer: Counts
    first: Seconds
    head: Counts
    free: Counts
    ready: Counts
    released: Seconds
    ready_at: NDArray[np.float64]
    out: Flags


class Rules(NamedTuple):
    """How servers are placed. `falls_back`: one that no host can give its pool memory to becomes all local."""

    cpu_weight: float
    ram_weight: float
    pool_weight: float
    slice_mib: int
    offline_seconds: float
    falls_back: bool


class Result(NamedTuple):
    """By server: its socket or REJECTED, the slices that it got, and the speed that its starts ask for in MiB/s.

    `restarts`: failures that ended it; after the last one it is on `socket`.
    """

    socket: Counts
    slices: Counts
    speed: NDArray[np.float32]
    restarts: Counts


def no_result(count: int) -> Result:
    """Return room for the results of so many servers."""
    socket, slices, restarts = (np.empty(count, np.int32) for _ in range(3))
    return Result(socket, slices, np.empty(count, np.float32), restarts)


class Outages(NamedTuple):
    """Failures and repairs by time: of a socket's host, or of a pool's device (the other one is -1)."""

    at: Seconds
    socket: Counts
    pool: Counts
    fails: Flags


class Moments(NamedTuple):
    """By moment: vCPUs that are sold and MiB that are stranded (free where no vCPU is left for `least_cpu`)."""

    at: Seconds
    sold_cpu: Seconds
    stranded_mib: Seconds
