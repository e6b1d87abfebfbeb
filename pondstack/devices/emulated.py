"""A multi-headed pool device that is a folder on a file system which all hosts of a rack share.

It stands for a CXL multi-headed device with its permission table (Pond section 4.1); see emulated_files for the files.
"""

import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from pondstack.devices import emulated_files as files
from pondstack.devices.atomic_files import write_json
from pondstack.devices.base import DeviceInfo, Heir
from pondstack.devices.folder_device import FolderDevice
from pondstack.devices.mappings import file_id, mapped_ranges, overlaps
from pondstack.devices.private_folder import close, private_folder
from pondstack.domain.errors import BadRequest, Conflict, InUse
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.units import DEFAULT_SLICE_MIB, MIB
from pondstack.domain.zeroing import DeviceMemory

DRIVER = "emulated"


class EmulatedDevice(FolderDevice):
    """The device of which the table is all: nothing but the hosts' good will keeps them to it."""

    driver: ClassVar[str] = DRIVER
    hands_over: ClassVar[bool] = True

    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Let `host` use the slices; raises PermissionHeld, StaleEpoch, NotFound, InUse, DeviceFailed."""
        indexes = indexes_of(extents)
        self._check_indexes(indexes)
        # Nobody is let into a slice that somebody else, perhaps in a pause, is about to zero.
        with files.slices_locked(self.path, indexes, alone=False):
            self._claim(indexes, host, tag, epoch)

    def add_heir(self, host: str, extents: Sequence[Extent], *, tag: str, owner: str, epoch: int) -> None:
        """Let `host` use slices of `owner`, too; raises PermissionHeld, StaleEpoch, NotFound, DeviceFailed."""
        indexes = indexes_of(extents)
        self._check_indexes(indexes)
        self._enter_heir(indexes, Heir(host, tag), owner, epoch)

    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Take the slices of `tag` back; raises StaleEpoch, DeviceFailed."""
        self._give_back(indexes, tag, epoch)

    def check_unreachable(self, indexes: Iterable[int]) -> None:
        """Raise InUse while a process of this machine maps a slice: it was let in before, and a file cannot cut it off.

        Whoever attaches anew, or starts a guest, is refused by the table. As root, a process of any user is seen. Not
        looked at is what has an owner again, an heir, whose guest maps it.
        """
        granted = self.permissions()
        wanted = [index for index in indexes if index not in granted]
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

    def check_unmapped(self, indexes: Iterable[int]) -> None:
        """Raise InUse while a process of this machine maps a slice, where hosts map the file slice by slice.

        Emulated CXL devices map all of it, whoever has which slice.
        """
        if self.info().memory is DeviceMemory.FILE:
            self.check_unreachable(indexes)


def create_device(
    path: str | os.PathLike[str],
    slices: int,
    slice_mib: int = DEFAULT_SLICE_MIB,
    serial: str | None = None,
    memory: DeviceMemory | None = None,
) -> EmulatedDevice:
    """Make a device folder with a sparse memory file; an existing device of the same shape keeps all but its `memory`.

    Nobody but its user, and a group that was given more rights on purpose, gets at it.

    Raises BadRequest for a shape without slices, Conflict when the folder holds a device of another shape or serial.
    """
    if slices < 1 or slice_mib < 1:
        raise BadRequest(f"a device of {slices} slices of {slice_mib} MiB is none; give at least one of each")
    folder = Path(path)
    with files.device_errors(folder):
        private_folder(folder)
    device = EmulatedDevice(folder)
    with files.locked(folder):
        if (folder / files.DEVICE).exists():
            info = device.info()
            _check_same(info, folder, slices, slice_mib, serial)
            if memory not in (None, info.memory):
                write_json(folder / files.DEVICE, _description(info.serial, slices, slice_mib, memory))
            with files.device_errors(folder):
                close(folder / files.MEMORY)
            return device
        with files.device_errors(folder):
            with open(folder / files.MEMORY, "wb", opener=_private) as file:
                file.truncate(slices * slice_mib * MIB)
            files.write_first_table(folder)
            # Last: a folder with device.json is a whole device.
            name = serial or f"emulated-{uuid.uuid4()}"
            write_json(folder / files.DEVICE, _description(name, slices, slice_mib, memory))
    return device


def _private(path: str, flags: int) -> int:
    """Open a file that only its user may read: it is the memory of all guests on the device."""
    return os.open(path, flags, 0o600)


def _description(serial: str, slices: int, slice_mib: int, memory: DeviceMemory | None) -> dict[str, str | int]:
    kind = str(memory or DeviceMemory.FILE)
    return {"serial": serial, "slice_mib": slice_mib, "slices_total": slices, "memory": kind}


def _check_same(info: DeviceInfo, folder: Path, slices: int, slice_mib: int, serial: str | None) -> None:
    if (info.slices_total, info.slice_mib) != (slices, slice_mib) or serial not in (None, info.serial):
        raise Conflict(
            f"{folder} already is device {info.serial} with {info.slices_total} slices of {info.slice_mib} MiB; "
            "use another folder, or remove this one when no guest uses it"
        )
