"""`nova.virt.pond`: Nova loads only nova.virt.<x>, so compute_driver = pond.PondLibvirtDriver finds ours here.

Loaded on use: the fake driver needs packages that a production host lacks, the libvirt one needs libvirt.
"""

from typing import Any

__all__ = ["PondFakeDriver", "PondLibvirtDriver"]


def __getattr__(name: str) -> Any:
    if name == "PondLibvirtDriver":
        from pondstack_nova.virt_libvirt import PondLibvirtDriver

        return PondLibvirtDriver
    if name == "PondFakeDriver":
        from pondstack_nova.virt_fake import PondFakeDriver

        return PondFakeDriver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
