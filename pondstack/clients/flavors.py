"""What a flavor, as Nova's API shows it with a server, has Nova ask Placement for."""

import re
from collections.abc import Mapping
from typing import Any

RESOURCES = "resources:"
GROUPED = re.compile(r"(?:resources|trait)[^:]+:")
"""Extra specs that ask Placement for a group of resources of its own (granular syntax)."""


def claim(flavor: Mapping[str, Any], *, from_image: bool) -> dict[str, int]:
    """Return what Nova claims for a flavor by itself: `resources:CLASS` replaces an amount, 0 takes the class out."""
    swap_gib = -(-int(flavor.get("swap") or 0) // 1024)
    disk = (int(flavor["disk"]) if from_image else 0) + int(flavor["ephemeral"]) + swap_gib
    found = {"VCPU": int(flavor["vcpus"]), "MEMORY_MB": int(flavor["ram"]), "DISK_GB": disk}
    specs = flavor.get("extra_specs") or {}
    found |= {key[len(RESOURCES) :]: int(amount) for key, amount in specs.items() if key.startswith(RESOURCES)}
    return {name: amount for name, amount in found.items() if amount}


def specs(flavor: Mapping[str, Any]) -> dict[str, str]:
    """Return the extra specs of a flavor, none where Nova does not show them."""
    return {str(key): str(value) for key, value in (flavor.get("extra_specs") or {}).items()}


def traits(flavor: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the traits that a flavor requires or forbids of the hosts; None where that is not all that it asks for."""
    specs = flavor.get("extra_specs")
    if specs is None or any(GROUPED.match(key) for key in specs):
        return None
    signs = {"required": "", "forbidden": "!"}
    wanted = [(key.partition(":")[2], value) for key, value in specs.items() if key.startswith("trait:")]
    return tuple(sorted(signs[value] + name for name, value in wanted if value in signs))
