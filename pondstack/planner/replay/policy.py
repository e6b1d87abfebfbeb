"""The functions of production that place and size servers, compiled: the very ones that scheduler and controller call.

tests/planner holds that they are the same objects; nothing is written again here.
"""

from pondstack.domain import host_choice, share
from pondstack.planner.replay.compiled import jit

slices_needed = jit(host_choice.slices_needed)
kept_back = jit(host_choice.kept_back)
comfort = jit(host_choice.comfort)
pool_weight = jit(host_choice.pool_weight)
local_ram_mib = jit(host_choice.local_ram_mib)
static_mib = jit(share.static_mib)
untouched_mib = jit(share.untouched_mib)
kept_local_mib = jit(share.kept_local_mib)
capped_mib = jit(share.capped_mib)
