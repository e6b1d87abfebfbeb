"""A pool device whose permission table and contents are a folder: what the drivers that keep one have in common.

The table is the record: it changes by compare-and-swap under an epoch. See emulated_files for the files.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from pondstack.devices import emulated_files as files
from pondstack.devices.base import DeviceInfo, Heir, Permission, PoolDevice
from pondstack.domain.errors import DeviceFailed, NotFound, PermissionHeld, StaleEpoch
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import DeviceMemory

Table = dict[str, Any]
"""Slice index, as text, to its permission."""

Change = Callable[[Table], None]

_KEEP_SIZE, _PUNCH_HOLE = 0x1, 0x2  # linux/falloc.h

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class FolderDevice(PoolDevice):
    """One device folder. Any number of objects, threads and processes may use the same one, paused ones among them."""

    driver: ClassVar[str]
    """Name of the driver, as the device's address tells it."""

    memory: ClassVar[DeviceMemory | None] = None
    """What the memory of all devices of the driver is; None: device.json says."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def info(self) -> DeviceInfo:
        """Return what the device is."""
        data = files.read_description(self.path)
        with files.device_errors(self.path):
            serial, slice_mib, slices_total = data["serial"], data["slice_mib"], data["slices_total"]
            memory = self.memory or DeviceMemory(data.get("memory", DeviceMemory.FILE))
            size = (self.path / files.MEMORY).stat().st_size
            if memory is not DeviceMemory.ELSEWHERE and size < slices_total * slice_mib * MIB:
                raise ValueError(f"{files.MEMORY} has {size} bytes for {slices_total} slices of {slice_mib} MiB")
        return DeviceInfo(
            serial=serial,
            slice_mib=slice_mib,
            slices_total=slices_total,
            address={"driver": self.driver, "path": str(self.path), "memory": str(memory)},
            memory=memory,
        )

    def sanitize(self, index: int, *, epoch: int) -> None:
        """Zero a slice and verify it; raises PermissionHeld, StaleEpoch, NotFound, InUse, DeviceFailed.

        Memory that is elsewhere is only checked to be nobody's: its hosts zero it, or they have none (domain.zeroing).
        """
        info = self._check_indexes([index])
        size_bytes = info.slice_mib * MIB

        def check(table: Table) -> None:
            holder = table.get(str(index))
            if holder:
                raise PermissionHeld(
                    f"slice {index} of {self.path} is still granted to host {holder['host']} (allocation "
                    f"{holder['tag']}); revoke it before sanitising"
                )

        # From the look at the table to the last zero nobody else can grant this slice. Who is at it already may be a
        # former leader in a pause: the sanitiser comes again, and the other slices do not wait for that one.
        with files.slices_locked(self.path, [index], alone=True, patient=False):
            self._change(epoch, check)
            self._check_ungranted(index)
            if info.memory == DeviceMemory.ELSEWHERE:
                return
            self._punch(index * size_bytes, size_bytes)
            left = files.first_written_byte(self.path, index * size_bytes, (index + 1) * size_bytes)
            if left is not None:
                raise DeviceFailed(
                    f"slice {index} of {self.path} is not zero after sanitising (offset {left}); replace it"
                )

    def permissions(self) -> Mapping[int, Permission]:
        """Return the permission table."""
        _version, table = files.read_table(self.path)
        with files.device_errors(self.path):
            return {int(index): _permission(entry) for index, entry in table["permissions"].items()}

    def _check_ungranted(self, index: int) -> None:
        """Raise InUse when somebody can reach a slice that nobody has a permission for; a driver's second look."""

    def _claim(self, indexes: Iterable[int], host: str, tag: str, epoch: int) -> None:
        """Enter a grant, all slices or none; raises PermissionHeld, StaleEpoch, DeviceFailed."""
        wanted: Table = {str(index): {"host": host, "tag": tag, "epoch": epoch} for index in indexes}

        def change(table: Table) -> None:
            for index in wanted:
                holder = table.get(index)
                if holder and {"host": host, "tag": tag} not in (_holder(holder), holder.get("heir")):
                    raise PermissionHeld(
                        f"slice {index} of {self.path} belongs to allocation {holder['tag']} of host {holder['host']}; "
                        "release that one first, or audit the ledger"
                    )
                if holder and "heir" in holder and holder["tag"] == tag:
                    wanted[index]["heir"] = holder["heir"]
            for index, entry in table.items():
                if self.unique_tags and entry["tag"] == tag and index not in wanted:
                    raise PermissionHeld(
                        f"allocation {tag} already is slice {index} of {self.path} (host {entry['host']}): a tag is "
                        "one grant; grant all of its slices together, or use another tag"
                    )
            table.update(wanted)

        self._change(epoch, change)

    def _give_back(self, indexes: Iterable[int], tag: str, epoch: int) -> None:
        """Take slices of `tag` out of the table; raises StaleEpoch, DeviceFailed."""
        wanted = [str(index) for index in indexes]

        def change(table: Table) -> None:
            for index in wanted:
                entry = dict(table.get(index, {}))
                heir = entry.pop("heir", None)
                if heir is not None and heir["tag"] == tag:
                    table[index] = entry
                elif heir is not None and entry["tag"] == tag:
                    table[index] = {**heir, "epoch": epoch}
                elif entry.get("tag") == tag:
                    del table[index]

        self._change(epoch, change)

    def _enter_heir(self, indexes: Iterable[int], heir: Heir, owner: str, epoch: int) -> None:
        """Enter an heir of slices of an owner, all or none; raises PermissionHeld, StaleEpoch, DeviceFailed."""
        wanted, plain = [str(index) for index in indexes], asdict(heir)

        def change(table: Table) -> None:
            for index in wanted:
                entry = table.get(index, {})
                if _holder(entry) == plain:
                    continue
                if (former := entry.get("heir")) is not None and former["tag"] == owner:
                    entry = {**former, "epoch": epoch}
                if entry.get("tag") != owner or entry.get("heir", plain) != plain:
                    raise PermissionHeld(
                        f"slice {index} of {self.path} cannot be handed over from allocation {owner} to {heir.tag}: "
                        f"its permission is {entry or 'nobody'}"
                    )
                table[index] = {**entry, "heir": plain}

        self._change(epoch, change)

    def _check_indexes(self, indexes: Iterable[int]) -> DeviceInfo:
        info = self.info()
        for index in indexes:
            if not 0 <= index < info.slices_total:
                raise NotFound(f"{self.path} has slices 0 to {info.slices_total - 1}, not {index}; audit the ledger")
        return info

    def _change(self, epoch: int, change: Change) -> None:
        """Change the table under `epoch`, as one step: a newer epoch or another change in between starts it again."""
        while True:
            version, present = files.read_table(self.path)
            if epoch < present["epoch"]:
                raise StaleEpoch(
                    f"{self.path} has seen epoch {present['epoch']} and refuses epoch {epoch}; another controller "
                    "leads now"
                )
            table = dict(present["permissions"])
            with files.device_errors(self.path):
                change(table)
            after = {"epoch": epoch, "permissions": table}
            if after == present or files.swap_table(self.path, version, after):
                return

    def _punch(self, start_bytes: int, size_bytes: int) -> None:
        with files.device_errors(self.path), open(self.path / files.MEMORY, "rb+", buffering=0) as memory:
            if _libc.fallocate(memory.fileno(), _KEEP_SIZE | _PUNCH_HOLE, start_bytes, size_bytes):
                code = ctypes.get_errno()
                raise OSError(code, f"cannot punch a hole: {os.strerror(code)} (use ext4, xfs or tmpfs)")
            os.fsync(memory.fileno())


def _holder(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"host": entry.get("host"), "tag": entry.get("tag")}


def _permission(entry: Mapping[str, Any]) -> Permission:
    heir = entry.get("heir")
    return Permission(entry["host"], entry["tag"], entry["epoch"], Heir(**heir) if heir else None)
