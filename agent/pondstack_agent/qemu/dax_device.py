"""The dax devices that a guest's QEMU maps: whether they are still what the agent put on record.

Names of dax devices are used again: by one alone a guest would get another's memory. Standard library only, because the
head of a guest reads it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pondstack.domain.backing import DEVDAX
from pondstack.domain.errors import DeviceFailed

FOLDER = "cxl"
"""Of the records, in the agent's state folder (pondstack_agent.drivers.cxl.allocations)."""
ROOT = Path("/")
_MIB = 1024 * 1024
_DRIVER = "device_dax"


def is_mapped_by_guest(record: Mapping[str, Any]) -> bool:
    """Tell whether a record's slices are devices that its guest maps; others are memory of the host's kernel."""
    return record.get("backing") == DEVDAX


def check(record: Mapping[str, Any], root: Path | None = None) -> None:
    """Raise DeviceFailed unless the devices of a record are there, are its own, and may be opened.

    `root`: another one than ROOT.
    """
    root, backings = root or ROOT, record.get("backings")
    boot = (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    if not backings or record["boot"] != boot:
        raise DeviceFailed(
            f"the slices of allocation {record['allocation_uuid']} are not all there; wait until pondstack-agent has "
            "made their devices, and start the instance again"
        )
    for backing in backings:
        path = backing["path"]
        wanted = backing["size_mib"] * _MIB, backing["start_bytes"], _DRIVER
        try:
            found = _device(root / "sys/bus/dax/devices" / path.rpartition("/")[2])
        except OSError as error:
            raise DeviceFailed(f"{path} cannot be looked at ({error.strerror}); hard reboot the instance") from None
        if found != wanted:
            raise DeviceFailed(f"{path} is another device by now; detach the instance and start it again")
        try:
            os.close(os.open(root / path.lstrip("/"), os.O_RDWR))
        except OSError as error:
            raise DeviceFailed(
                f"QEMU may not open {path} ({error.strerror}); see cgroup_device_acl of libvirt's qemu.conf, for "
                "all names that dax devices of this host have"
            ) from None


def _device(folder: Path) -> tuple[int, int, str]:
    """Return size and start in bytes, and the driver; raises OSError."""
    size, start = (int((folder / name).read_text(), 0) for name in ("size", "mapping0/start"))
    return size, start, os.path.basename(os.readlink(folder / "driver"))
