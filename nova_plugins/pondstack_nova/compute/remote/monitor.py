"""QEMU's monitor of a guest, by libvirt: what it leaves out of a migration, for which libvirt has no word."""

import importlib
import json
from typing import Any

from nova import exception

IGNORE_SHARED = "x-ignore-shared"


def ignore_shared(guest: Any, *, on: bool) -> None:
    """Have migrations of a nova.virt.libvirt.guest.Guest leave memory out that is a shared file, or not.

    QEMU checks that both ends of a migration say the same. Raises InternalError, and libvirt's errors.
    """
    capability = {"capability": IGNORE_SHARED, "state": on}
    command = {"execute": "migrate-set-capabilities", "arguments": {"capabilities": [capability]}}
    answer = json.loads(_bindings().qemuMonitorCommand(guest._domain, json.dumps(command), 0))
    if "error" in answer:
        raise exception.InternalError(f"QEMU refuses {IGNORE_SHARED}: {answer['error'].get('desc')}")


def _bindings() -> Any:
    """Return libvirt's own for QEMU: as Nova imports libvirt, not before it is needed."""
    return importlib.import_module("libvirt_qemu")
