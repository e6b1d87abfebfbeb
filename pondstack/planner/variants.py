"""What could be otherwise with a policy, one thing at a time, to find out what keeps it from saving more.

None of it can be bought or configured: these are measurements of a cause, and no offers.
"""

from dataclasses import replace

import numpy as np

from pondstack.planner.dram import seconds
from pondstack.planner.history import History
from pondstack.planner.settings import EVEN, NO_BUFFER, SMALL_SLICE_MIB, SMALL_SLICES, Settings
from pondstack.planner.sizing import Sizes

AS_IT_IS = ""


def settings_of(variant: str, settings: Settings) -> Settings:
    """Return the settings of a variant."""
    if variant == SMALL_SLICES:
        return replace(settings, slice_mib=min(SMALL_SLICE_MIB, settings.slice_mib))
    if variant == NO_BUFFER:
        return replace(settings, buffer_least_slices=0, buffer_most_percent=0)
    return settings


def sizes_of(variant: str, history: History, sizes: Sizes, slice_mib: int) -> Sizes:
    """Return the sizes of a variant; even: what servers of one size get on average, in whole slices."""
    if variant != EVEN:
        return sizes
    weight = seconds(history)
    _, size = np.unique(history.memory_mib, return_inverse=True)
    mean = np.bincount(size, sizes.pool_mib * weight) / np.maximum(1.0, np.bincount(size, weight))
    slices = np.rint(mean / slice_mib).astype(np.int32)
    return replace(sizes, pool_mib=slices[size] * np.int32(slice_mib))
