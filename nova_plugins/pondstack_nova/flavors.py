"""What `pond:` specs may stand beside: one check for flavor changes, server creation and scheduling. Pure.

Guests with pool memory have their NUMA layout made by pondstack's virt driver; whatever makes Nova lay out NUMA nodes
itself (hw:numa_*, pinning, page sizes) contradicts that. `pond:policy=local` has no pool memory: it fits all.
"""

import re
from collections.abc import Mapping

from pondstack.domain.errors import BadSpec
from pondstack.domain.sizing import LEGAL, Policy, PondSpecs, parse_specs
from pondstack.domain.units import RESOURCE_CLASS

GROUP_SUFFIX = "_POND"
POOL_KEY = f"resources{GROUP_SUFFIX}:{RESOURCE_CLASS}"
LOCAL_KEY = "resources:MEMORY_MB"

NUMA = "pond: specs lay out the guest's NUMA nodes themselves; legal with them: no hw:numa_*, no pinning, no page size"
_CONTRADICTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"hw:numa_(nodes|cpus\..+|mem\..+)"), NUMA),
    (re.compile(r"hw:cpu_(dedicated_mask|realtime|realtime_mask)|hw:emulator_threads_policy|hw:mem_page_size"), NUMA),
    (re.compile(r"hw:(mem_encryption|pmem)"), "pool memory can be neither encrypted guest memory nor beside hw:pmem"),
    (re.compile(r"resources\w*:(MEMORY_MB|CUSTOM_POND_\w+)"), "the split sets these resources; give pond: specs only"),
)
_PINNED = {"hw:cpu_policy": {"dedicated", "mixed"}}
_OFF = {"hw:cpu_realtime": {"no", "false"}, "hw:mem_encryption": {"false", "no", "0"}}


def check(extra_specs: Mapping[str, str], memory_mib: int | None = None) -> PondSpecs | None:
    """Return the parsed `pond:` specs of a flavor, None when there are none.

    Raises BadSpec: unknown, malformed, contradicting each other or another spec, or (with `memory_mib`, the flavor's
    RAM) leaving no local memory. The text shows the legal form.
    """
    specs = parse_specs(extra_specs)
    if specs is None:
        return None
    if specs.policy is Policy.LOCAL:
        return specs
    for key, value in sorted(extra_specs.items()):
        reason = _contradiction(key, str(value))
        if reason:
            raise BadSpec(f"{key}={value} contradicts pond:policy={specs.policy}: {reason}; or set pond:policy=local")
    if memory_mib is not None and specs.pool_mib >= memory_mib:
        raise BadSpec(
            f"pond:pool_mb={specs.pool_mib} leaves no local memory in a flavor of {memory_mib} MiB; "
            f"it must be {LEGAL['pool_mb']}"
        )
    return specs


def check_numa(specs: PondSpecs | None, topology: object) -> None:
    """Raise BadSpec when Nova lays out NUMA nodes (from flavor or image) for a guest that may get pool memory."""
    if specs is not None and specs.policy is not Policy.LOCAL and topology is not None:
        raise BadSpec(f"flavor or image asks for a NUMA topology or pinned CPUs: {NUMA}; or set pond:policy=local")


def obstacle(extra_specs: Mapping[str, str], topology: object) -> str | None:
    """Return what of a flavor without `pond:` specs, or of Nova's NUMA topology, leaves no room for pool memory."""
    for key, value in sorted(extra_specs.items()):
        if _contradiction(key, str(value)):
            return f"{key}={value} lays out or sets the memory itself"
    return None if topology is None else "flavor or image asks for a NUMA topology or pinned CPUs"


def _contradiction(key: str, value: str) -> str | None:
    if value.lower() in _OFF.get(key, ()):
        return None
    if value.lower() in _PINNED.get(key, ()):
        return NUMA
    return next((reason for pattern, reason in _CONTRADICTIONS if pattern.fullmatch(key)), None)
