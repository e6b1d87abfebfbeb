"""What `nova.virt.pond` passes on, the module that `pondstack-manage nova link` puts into Nova: the compute drivers.

Loaded on use: the fake driver needs packages that a production host lacks, the libvirt one needs libvirt.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "PondLibvirtDriver":
        from pondstack_nova.virt_libvirt import PondLibvirtDriver

        return PondLibvirtDriver
    if name == "PondFakeDriver":
        from pondstack_nova.virt_fake import PondFakeDriver

        return PondFakeDriver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
