"""What pins or encrypts a guest's memory, so that none of it may be pool memory or remote memory. Pure.

VFIO pins all of a guest's pages for as long as the device is there. The kernel moves pages that are pinned for long out
of memory that can go offline first, so the "pool memory" would end in local memory which nobody claimed, or the guest
would not start. Encrypted guest memory cannot be moved at all. A page of remote memory may leave while a device that
pinned it still writes to it.
"""

import re
from collections.abc import Mapping
from typing import Any

from nova.network import model
from nova.objects import instance_pci_requests

from pondstack.domain.errors import BadSpec
from pondstack.domain.sizing import Policy, PondSpecs

LEGAL = "legal: a server without it, pond:policy=local, or pond:policy=auto, which is all local then"
REMOTE_LEGAL = "legal: a server without it, or a flavor without pond:remote_mb"

_FLAVOR: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"pci_passthrough:alias"), "a PCI device"),
    (re.compile(r"accel:device_profile"), "an accelerator"),
    (re.compile(r"resources\w*:(VGPU|PGPU|FPGA|PCI_DEVICE|SRIOV_NET_VF)"), "a mediated or PCI device"),
)
VNIC_TYPES = frozenset(model.VNIC_TYPES_DIRECT_PASSTHROUGH) | {model.VNIC_TYPE_VIRTIO_FORWARDER}
"""Types of ports that libvirt gives to guests by VFIO, or by vhost-vdpa, which pins memory as well."""


def of_flavor(extra_specs: Mapping[str, str]) -> str | None:
    """Return what of a flavor pins memory; None when nothing does."""
    for key, value in sorted(extra_specs.items()):
        for pattern, what in _FLAVOR:
            if pattern.fullmatch(key) and str(value) not in ("", "0"):
                return f"{what} ({key}={value})"
    return None


def of_image(image: Any) -> str | None:
    """Return what of an image (Nova's ImageMeta) encrypts or locks memory; None when nothing does."""
    properties = image.properties if image is not None and "properties" in image else None
    if properties is None:
        return None
    if properties.get("hw_mem_encryption"):
        return "encrypted memory (image property hw_mem_encryption)"
    if properties.get("hw_locked_memory"):
        return "locked memory (image property hw_locked_memory)"
    return None


def of_request(spec: Any) -> str | None:
    """Return what of a RequestSpec, its ports included, pins or encrypts memory; None when nothing does."""
    extra_specs = (spec.flavor.extra_specs if "extra_specs" in spec.flavor else None) or {}
    return of_flavor(extra_specs) or of_image(spec.image if "image" in spec else None) or _of_devices(spec)


def check(specs: PondSpecs | None, pin: str | None) -> None:
    """Raise BadSpec when a guest that must have pool or remote memory has something that pins or encrypts it."""
    if specs is not None and specs.remote_mib and pin is not None:
        raise BadSpec(
            f"pond:remote_mb={specs.remote_mib} contradicts {pin}: no device may pin remote memory, "
            f"and it can be neither locked nor encrypted; {REMOTE_LEGAL}"
        )
    if specs is not None and specs.policy is Policy.FIXED and pin is not None:
        raise BadSpec(f"pond:policy=fixed contradicts {pin}: pool memory can be neither pinned nor encrypted; {LEGAL}")


def _of_devices(spec: Any) -> str | None:
    wanted = spec.pci_requests if "pci_requests" in spec else None
    for request in wanted.requests if wanted is not None else ():
        if request.source == instance_pci_requests.InstancePCIRequest.NEUTRON_PORT:
            return "an SR-IOV or vDPA port"
        return f"a PCI device (alias {request.alias_name})"
    return None
