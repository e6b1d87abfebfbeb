"""The functions of production that place and size servers, compiled: the very ones that scheduler and controller call.

tests/planner holds that they are the same objects; nothing is written again here.
"""

from numba import njit

from pondstack.domain import host_choice, share

slices_needed = njit(cache=True)(host_choice.slices_needed)
kept_back = njit(cache=True)(host_choice.kept_back)
comfort = njit(cache=True)(host_choice.comfort)
pool_weight = njit(cache=True)(host_choice.pool_weight)
local_ram_mib = njit(cache=True)(host_choice.local_ram_mib)
static_mib = njit(cache=True)(share.static_mib)
untouched_mib = njit(cache=True)(share.untouched_mib)
kept_local_mib = njit(cache=True)(share.kept_local_mib)
capped_mib = njit(cache=True)(share.capped_mib)
