"""What `pond:` specs may stand beside: one check for flavor changes, server creation and scheduling. Pure.

Guests with pool memory have their NUMA layout made by pondstack's virt driver; whatever makes Nova lay out NUMA nodes
itself (hw:numa_*, pinning, page sizes) contradicts that. `pond:policy=local` has no pool memory: it fits all.
Remote memory is fetched and evicted behind the guest's back, so nothing may pin, lock or encrypt it.
"""

import re
from collections.abc import Mapping

from pondstack.domain.errors import BadSpec
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.remote_share import MAX_REMOTE_PERCENT, MIRROR_CLASS, Shares, check_percent, shares
from pondstack.domain.sizing import LEGAL, PondSpecs, parse_specs
from pondstack.domain.swap_disk import MAX_SWAP_PERCENT
from pondstack.domain.swap_disk import check_percent as check_swap_percent
from pondstack.domain.units import RESOURCE_CLASS

GROUP_SUFFIX = "_POND"
POOL_KEY = f"resources{GROUP_SUFFIX}:{RESOURCE_CLASS}"
LOCAL_KEY = "resources:MEMORY_MB"
REMOTE_SUFFIX = "_POND_REMOTE"
REMOTE_KEY = f"resources{REMOTE_SUFFIX}:{REMOTE_CLASS}"
MIRROR_KEY = f"resources:{MIRROR_CLASS}"
GROUP_POLICY_KEY = "group_policy"

NUMA = "pond: specs lay out the guest's NUMA nodes themselves; legal with them: no hw:numa_*, no pinning, no page size"
_CONTRADICTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"hw:numa_(nodes|cpus\..+|mem\..+)"), NUMA),
    (re.compile(r"hw:cpu_(dedicated_mask|realtime|realtime_mask)|hw:emulator_threads_policy|hw:mem_page_size"), NUMA),
    (re.compile(r"hw:(mem_encryption|pmem)"), "pool memory can be neither encrypted guest memory nor beside hw:pmem"),
    (re.compile(r"resources\w*:(MEMORY_MB|CUSTOM_POND_\w+)"), "the split sets these resources; give pond: specs only"),
)
_REMOTE_CONTRADICTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"hw:locked_memory"), "remote memory cannot be locked into local memory"),
)
_OWN_RESOURCES = re.compile(r"resources\w*:CUSTOM_POND_\w+")
_PINNED = {"hw:cpu_policy": {"dedicated", "mixed"}}
_NO = {"false", "no", "0", "off"}
_OFF = {"hw:cpu_realtime": {"no", "false"}, "hw:mem_encryption": {"false", "no", "0"}, "hw:locked_memory": _NO}


def check(
    extra_specs: Mapping[str, str],
    memory_mib: int | None = None,
    max_remote_percent: int = MAX_REMOTE_PERCENT,
    max_swap_percent: int = MAX_SWAP_PERCENT,
) -> PondSpecs | None:
    """Return the parsed `pond:` specs of a flavor, None when there are none.

    Raises BadSpec: unknown, malformed, contradicting each other or another spec, or (with `memory_mib`, the flavor's
    RAM) leaving no local memory, more than `max_remote_percent` of it remote, or a swap disk larger than
    `max_swap_percent` of it. The text shows the legal form.
    """
    specs = parse_specs(extra_specs)
    if specs is not None and specs.swap_mib:
        _check_swap(specs, extra_specs, memory_mib, max_swap_percent)
    if specs is None or specs.all_local:
        return specs
    for key, value in sorted(extra_specs.items()):
        reason = _contradiction(key, str(value), remote=specs.remote_mib > 0)
        if reason:
            raise BadSpec(f"{key}={value} contradicts {_asked(specs)}: {reason}; {_way_out(specs)}")
    if memory_mib is None:
        return specs
    if specs.pool_mib >= memory_mib:
        raise BadSpec(
            f"pond:pool_mb={specs.pool_mib} leaves no local memory in a flavor of {memory_mib} MiB; "
            f"it must be {LEGAL['pool_mb']}"
        )
    shares(memory_mib, specs.pool_mib, specs.remote_mib, disk_mib=specs.disk_mib)
    check_percent(memory_mib, specs.remote_mib, max_remote_percent, specs.disk_mib)
    return specs


def check_numa(specs: PondSpecs | None, topology: object) -> None:
    """Raise BadSpec when Nova lays out NUMA nodes (of flavor or image) for a guest with pool or remote memory."""
    if specs is not None and not specs.all_local and topology is not None:
        raise BadSpec(f"flavor or image asks for a NUMA topology or pinned CPUs: {NUMA}; {_way_out(specs)}")


def sized(found: Shares) -> dict[str, str]:
    """Return the extra specs by which Nova asks Placement for a guest with these shares."""
    keys = {POOL_KEY: found.pool_mib, REMOTE_KEY: found.remote_mib, MIRROR_KEY: found.mirror_mib}
    local = {LOCAL_KEY: found.local_mib} if found.pool_mib or found.remote_mib else {}
    return {key: str(mib) for key, mib in (local | keys).items() if mib}


def obstacle(extra_specs: Mapping[str, str], topology: object) -> str | None:
    """Return what of a flavor without `pond:` specs, or of Nova's NUMA topology, leaves no room for pool memory."""
    for key, value in sorted(extra_specs.items()):
        if _contradiction(key, str(value)):
            return f"{key}={value} lays out or sets the memory itself"
    return None if topology is None else "flavor or image asks for a NUMA topology or pinned CPUs"


def _check_swap(
    specs: PondSpecs, extra_specs: Mapping[str, str], memory_mib: int | None, max_swap_percent: int
) -> None:
    """Raise BadSpec when a swap disk is too large, or its mirror is asked for by other specs as well."""
    for key, value in sorted(extra_specs.items()):
        if _OWN_RESOURCES.fullmatch(key):
            raise BadSpec(
                f"{key}={value} contradicts pond:swap_mb={specs.swap_mib}: the swap disk sets it; give pond: specs "
                "only, or take pond:swap_mb away"
            )
    if memory_mib is not None:
        check_swap_percent(memory_mib, specs.swap_mib, max_swap_percent)


def _asked(specs: PondSpecs) -> str:
    return f"pond:remote_mb={specs.remote_mib}" if specs.remote_mib else f"pond:policy={specs.policy}"


def _way_out(specs: PondSpecs) -> str:
    return "or take pond:remote_mb away" if specs.remote_mib else "or set pond:policy=local"


def _contradiction(key: str, value: str, *, remote: bool = False) -> str | None:
    if value.lower() in _OFF.get(key, ()):
        return None
    if value.lower() in _PINNED.get(key, ()):
        return NUMA
    known = (*_CONTRADICTIONS, *(_REMOTE_CONTRADICTIONS if remote else ()))
    return next((reason for pattern, reason in known if pattern.fullmatch(key)), None)
