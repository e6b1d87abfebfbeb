"""What sizing gives to each of many servers, by production's functions. Compiled."""

import numpy as np
from numpy.typing import NDArray

from pondstack.planner.replay import policy
from pondstack.planner.replay.compiled import jit
from pondstack.planner.replay.state import Counts

static_mib, untouched_mib = policy.static_mib, policy.untouched_mib
kept_local_mib, capped_mib = policy.kept_local_mib, policy.capped_mib


@jit
def static(memory_mib: Counts, percent: int, slice_mib: int) -> Counts:
    """Return the static share of each."""
    found = np.empty(len(memory_mib), np.int32)
    for number in range(len(memory_mib)):
        found[number] = static_mib(memory_mib[number], percent, slice_mib)
    return found


@jit
def modelled(
    memory_mib: Counts, labelled: NDArray[np.bool_], share: NDArray[np.float64], min_local_percent: int, slice_mib: int
) -> Counts:
    """Return all but the minimum of those that are labelled insensitive, and the untouched share of the others."""
    found = np.empty(len(memory_mib), np.int32)
    for number in range(len(memory_mib)):
        memory = memory_mib[number]
        if labelled[number]:
            wanted = memory - kept_local_mib(memory, min_local_percent, slice_mib)
        else:
            wanted = untouched_mib(share[number], memory, slice_mib)
        found[number] = capped_mib(wanted, memory, 100, slice_mib)
    return found
