"""The rack's flavors: a fixed and an automatic split, remote memory, a swap disk, guaranteed local, and plain Nova."""

from typing import Any

FLAVORS: dict[str, tuple[int, int, dict[str, str]]] = {
    "m1.tiny": (1, 256, {}),
    "m1.large": (2, 8192, {}),
    "pond.fixed.small": (1, 1280, {"pond:policy": "fixed", "pond:pool_mb": "1024"}),
    "pond.fixed.large": (1, 2304, {"pond:policy": "fixed", "pond:pool_mb": "2048"}),
    "pond.auto.medium": (2, 8192, {"pond:policy": "auto"}),
    "pond.remote.small": (1, 256, {"pond:remote_mb": "192"}),
    "pond.swap.small": (1, 256, {"pond:remote_mb": "128", "pond:disk_mb": "64", "pond:swap_mb": "128"}),
    "pond.local.small": (1, 1280, {"pond:policy": "local"}),
}
"""Name: vCPUs, RAM in MiB, extra specs."""


def make(connection: Any) -> None:
    """Create the flavors; those that exist are kept."""
    have = {flavor.name: flavor for flavor in connection.compute.flavors(get_extra_specs=True)}
    for name, (vcpus, ram_mib, specs) in FLAVORS.items():
        flavor = have.get(name) or connection.compute.create_flavor(
            name=name, vcpus=vcpus, ram=ram_mib, disk=1, flavorid=name
        )
        if specs and not (flavor.extra_specs or {}):
            connection.compute.create_flavor_extra_specs(flavor, specs)
