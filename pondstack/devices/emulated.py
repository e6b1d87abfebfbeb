"""A multi-headed pool device that is a folder on a file system which all hosts of a rack share.

It stands for a CXL multi-headed device with its permission table (Pond section 4.1); see emulated_files for the files.
"""

import ctypes
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pondstack.devices import emulated_files as files
from pondstack.devices.base import DeviceInfo, Permission, PoolDevice
from pondstack.devices.durable import write_json
from pondstack.devices.mappings import file_id, mapped_ranges, overlaps
from pondstack.domain.errors import BadRequest, Conflict, DeviceFailed, InUse, NotFound, PermissionHeld, StaleEpoch
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.units import DEFAULT_SLICE_MIB, MIB

DRIVER = "emulated"
Table = dict[str, Any]
"""Slice index, as text, to its permission."""

_KEEP_SIZE, _PUNCH_HOLE = 0x1, 0x2  # linux/falloc.h

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class EmulatedDevice(PoolDevice):
    """One device folder. Any number of objects, threads and processes may use the same one, paused ones among them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def info(self) -> DeviceInfo:
        """Return what the device is."""
        data = files.read_json(self.path / files.DEVICE, self.path)
        with files.device_errors(self.path):
            serial, slice_mib, slices_total = str(data["serial"]), int(data["slice_mib"]), int(data["slices_total"])
            size = (self.path / files.MEMORY).stat().st_size
            if size < slices_total * slice_mib * MIB:
                raise ValueError(f"{files.MEMORY} has {size} bytes for {slices_total} slices of {slice_mib} MiB")
        address = {"driver": DRIVER, "path": str(self.path)}
        return DeviceInfo(serial=serial, slice_mib=slice_mib, slices_total=slices_total, address=address)

    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Let `host` use the slices; raises PermissionHeld, StaleEpoch, NotFound, InUse, DeviceFailed."""
        indexes = indexes_of(extents)
        self._check_indexes(indexes)

        def change(table: Table) -> None:
            for index in indexes:
                holder = table.get(str(index))
                if holder and (holder["host"], holder["tag"]) != (host, tag):
                    raise PermissionHeld(
                        f"slice {index} of {self.path} belongs to allocation {holder['tag']} of host {holder['host']}; "
                        "release that one first, or audit the ledger"
                    )
            table.update({str(index): {"host": host, "tag": tag, "epoch": epoch} for index in indexes})

        # Nobody is let into a slice that somebody else, perhaps in a pause, is about to zero.
        with files.slices_locked(self.path, indexes, to_zero=False):
            self._change(epoch, change)

    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Take the slices of `tag` back; raises StaleEpoch, DeviceFailed."""
        wanted = [str(index) for index in indexes]

        def change(table: Table) -> None:
            for index in wanted:
                if table.get(index, {}).get("tag") == tag:
                    del table[index]

        self._change(epoch, change)

    def sanitize(self, index: int, *, epoch: int) -> None:
        """Zero a slice and verify it; raises PermissionHeld, StaleEpoch, NotFound, InUse, DeviceFailed."""
        size_bytes = self._check_indexes([index]).slice_mib * MIB

        def check(table: Table) -> None:
            holder = table.get(str(index))
            if holder:
                raise PermissionHeld(
                    f"slice {index} of {self.path} is still granted to host {holder['host']} (allocation "
                    f"{holder['tag']}); revoke it before sanitising"
                )

        # From the look at the table to the last zero nobody else can grant this slice.
        with files.slices_locked(self.path, [index], to_zero=True):
            self._change(epoch, check)
            self._punch(index * size_bytes, size_bytes)
            left = files.first_written_byte(self.path, index * size_bytes, (index + 1) * size_bytes)
            if left is not None:
                raise DeviceFailed(
                    f"slice {index} of {self.path} is not zero after sanitising (offset {left}); replace it"
                )

    def check_unreachable(self, indexes: Iterable[int]) -> None:
        """Raise InUse while a process of this machine maps a slice: it was let in before, and a file cannot cut it off.

        Whoever attaches anew, or starts a guest, is refused by the table. As root, a process of any user is seen.
        """
        wanted = list(indexes)
        size_bytes = self._check_indexes(wanted).slice_mib * MIB
        with files.device_errors(self.path):
            memory = file_id(self.path / files.MEMORY)
            ranges = mapped_ranges([memory])[memory]
        mapped = [index for index in wanted if overlaps(ranges, index * size_bytes, (index + 1) * size_bytes)]
        if mapped:
            raise InUse(
                f"a process of this machine still maps the slices {mapped} of {self.path}; find it in /proc/*/maps and "
                "end it"
            )

    def permissions(self) -> Mapping[int, Permission]:
        """Return the permission table."""
        _version, table = files.read_table(self.path)
        with files.device_errors(self.path):
            return {int(index): Permission(**entry) for index, entry in table["permissions"].items()}

    def _check_indexes(self, indexes: Iterable[int]) -> DeviceInfo:
        info = self.info()
        for index in indexes:
            if not 0 <= index < info.slices_total:
                raise NotFound(f"{self.path} has slices 0 to {info.slices_total - 1}, not {index}; audit the ledger")
        return info

    def _change(self, epoch: int, change: Callable[[Table], None]) -> None:
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


def create_device(
    path: str | os.PathLike[str], slices: int, slice_mib: int = DEFAULT_SLICE_MIB, serial: str | None = None
) -> EmulatedDevice:
    """Make a device folder with a sparse memory file; an existing device of the same shape stays as it is.

    Raises BadRequest for a shape without slices, Conflict when the folder holds a device of another shape or serial.
    """
    if slices < 1 or slice_mib < 1:
        raise BadRequest(f"a device of {slices} slices of {slice_mib} MiB is none; give at least one of each")
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    device = EmulatedDevice(folder)
    with files.locked(folder):
        if (folder / files.DEVICE).exists():
            _check_same(device.info(), folder, slices, slice_mib, serial)
            return device
        with files.device_errors(folder):
            with open(folder / files.MEMORY, "wb") as memory:
                memory.truncate(slices * slice_mib * MIB)
            files.write_first_table(folder)
            # Last: a folder with device.json is a whole device.
            description = {
                "serial": serial or f"emulated-{uuid.uuid4()}",
                "slice_mib": slice_mib,
                "slices_total": slices,
            }
            write_json(folder / files.DEVICE, description)
    return device


def _check_same(info: DeviceInfo, folder: Path, slices: int, slice_mib: int, serial: str | None) -> None:
    if (info.slices_total, info.slice_mib) != (slices, slice_mib) or serial not in (None, info.serial):
        raise Conflict(
            f"{folder} already is device {info.serial} with {info.slices_total} slices of {info.slice_mib} MiB; "
            "use another folder, or remove this one when no guest uses it"
        )
