"""Files of an emulated device, for its controller side, its hosts and the head of a guest. Standard library only.

device.json            {"serial", "slice_mib", "slices_total", "memory"}, written once; see pondstack.domain.zeroing
memory                 one sparse file; slice i starts at i * slice_mib MiB
permissions/<n>.json   {"epoch": highest seen, "permissions": {"<slice>": {"host", "tag", "epoch"}}}; highest n counts.
                       With "heir": {"host", "tag"} while a slice is being handed over
slices                 byte i is locked: for writing while slice i is being zeroed (or a head is told of it: dcd), for
                       reading while it is granted
lock                   flock(2) around the making of the device

No process takes the table with it into a pause: it changes by compare-and-swap. The next version is linked into place
only if it is not there yet, so that whoever read an older one, and slept, changes nothing. Zeroing cannot be undone, so
that it excludes the granting of its own slice, and of no other. (At first the table was one file, permissions.json.)
"""

import contextlib
import errno
import fcntl
import json
import os
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pondstack.devices.atomic_files import sync_folder, temporary_json, write_json
from pondstack.domain.errors import DeviceFailed, InUse
from pondstack.domain.shape import Fields, Index, Shape, Table, Text, Whole

DEVICE, MEMORY, PERMISSIONS, SLICES, LOCK = "device.json", "memory", "permissions", "slices", "lock"
FORMER_PERMISSIONS = "permissions.json"
KEPT_VERSIONS = 4
"""So many old tables stay, for readers that are about to open the one that was the newest."""

_MOST_SLICES = 2**20
_DESCRIPTION = Fields(
    {"serial": Text(255, 1), "slice_mib": Whole(1, 2**31 - 1), "slices_total": Whole(1, _MOST_SLICES)},
    {"memory": Text(64)},
    others=True,
)
_HEIR = Fields({"host": Text(255, 1), "tag": Text(255, 1)})
_PERMISSION = Fields({"host": Text(255, 1), "tag": Text(255, 1), "epoch": Whole()}, {"heir": _HEIR})
_TABLE = Fields({"epoch": Whole(), "permissions": Table(Index(_MOST_SLICES - 1), _PERMISSION)})
"""What is in the files. Who is let in by a table must not be what somebody made of it since."""

LOCK_SECONDS = 2.0
_POLL_SECONDS = 0.01
_CHUNK_BYTES = 1024 * 1024
_ZEROS = bytes(_CHUNK_BYTES)


@contextlib.contextmanager
def device_errors(path: Path) -> Iterator[None]:
    """Turn what a missing or broken device folder raises into DeviceFailed."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DeviceFailed(
            f"the pool device {path} does not answer ({type(error).__name__}: {error}); check that the folder "
            "is there and whole, or make one with `pondstack-manage device create`"
        ) from error


def read_description(device: Path) -> dict[str, Any]:
    """Return what a device says that it is; raises DeviceFailed."""
    return read_json(device / DEVICE, device, _DESCRIPTION)


def read_json(path: Path, device: Path, shape: Shape) -> dict[str, Any]:
    """Return an object of a device's JSON file; raises DeviceFailed, also when it is not of the shape."""
    with device_errors(device):
        return _read(path, shape)


def _read(path: Path, shape: Shape) -> dict[str, Any]:
    data = json.loads(path.read_text())
    try:
        shape.check(data)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return dict(data)


@contextlib.contextmanager
def locked(device: Path) -> Iterator[None]:
    """Hold the device's lock, against other threads and processes alike; raises DeviceFailed."""
    with device_errors(device):
        handle = os.open(device / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_table(device: Path) -> tuple[int, dict[str, Any]]:
    """Return the permission table and its version; raises DeviceFailed."""
    while True:
        with device_errors(device):
            version = max(_versions(device), default=0)
            path = _version_path(device, version) if version else device / FORMER_PERMISSIONS
            try:
                table = _read(path, _TABLE)
            except FileNotFoundError:
                if max(_versions(device), default=0) > version:
                    continue  # it was replaced and swept away meanwhile
                raise
            return version, {"epoch": table["epoch"], "permissions": dict(table["permissions"])}


def swap_table(device: Path, version: int, table: Mapping[str, Any]) -> bool:
    """Put the table that follows `version` into place, durably; False when somebody else's is there already."""
    with device_errors(device):
        folder = device / PERMISSIONS
        folder.mkdir(exist_ok=True)
        with temporary_json(folder, table) as temporary:
            try:
                os.link(temporary, _version_path(device, version + 1))
            except FileExistsError:
                return False
        sync_folder(folder)
        # One that lost its place long ago may have linked a version that was swept away: it is below the newest.
        if max(_versions(device)) != version + 1:
            return False
        _sweep(device, version + 1)
        return True


def write_first_table(device: Path) -> None:
    """Make the table of a new device."""
    (device / PERMISSIONS).mkdir(exist_ok=True)
    write_json(_version_path(device, 1), {"epoch": 0, "permissions": {}})


def _versions(device: Path) -> list[int]:
    try:
        names = os.listdir(device / PERMISSIONS)
    except FileNotFoundError:
        return []
    return [int(name[: -len(".json")]) for name in names if name[0] != "." and name.endswith(".json")]


def _version_path(device: Path, version: int) -> Path:
    return device / PERMISSIONS / f"{version}.json"


def _sweep(device: Path, newest: int) -> None:
    for version in _versions(device):
        if version <= newest - KEPT_VERSIONS:
            _version_path(device, version).unlink(missing_ok=True)
    (device / FORMER_PERMISSIONS).unlink(missing_ok=True)


@contextlib.contextmanager
def slices_locked(device: Path, indexes: Iterable[int], *, alone: bool, patient: bool = True) -> Iterator[None]:
    """Keep others from zeroing some slices and, `alone`, from granting them; raises InUse, DeviceFailed.

    It holds between threads and processes alike, and ends with its process. One that is paused keeps it: InUse after
    LOCK_SECONDS, and at once for whoever is not `patient`.
    """
    ends = time.monotonic() + (LOCK_SECONDS if patient else 0.0)
    with device_errors(device):
        handle = os.open(device / SLICES, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for index in sorted(set(indexes)):
            while not _lock_byte(handle, index, alone):
                if time.monotonic() >= ends:
                    raise InUse(
                        f"slice {index} of {device} is being zeroed or granted by another controller that does not "
                        "go on; its turn comes again when that process runs or ends"
                    )
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _lock_byte(handle: int, index: int, exclusive: bool) -> bool:
    """Lock one byte for this open file (F_OFD_SETLK, struct flock); False when another one is in the way."""
    kind = fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
    wanted = struct.pack("@hhqqi4x", kind, os.SEEK_SET, index, 1, 0)
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, wanted)
    except (BlockingIOError, PermissionError):
        return False
    return True


def first_written_byte(device: Path, start_bytes: int, end_bytes: int) -> int | None:
    """Return the offset of the first non-zero MiB of a range of the memory file, None when all is zero.

    Holes are skipped unread, so that an untouched slice costs one system call. Raises DeviceFailed.
    """
    with device_errors(device), open(device / MEMORY, "rb", buffering=0) as memory:
        position = _next_data(memory.fileno(), start_bytes)
        while position is not None and position < end_bytes:
            chunk = os.pread(memory.fileno(), min(_CHUNK_BYTES, end_bytes - position), position)
            if not chunk:
                raise OSError(f"{MEMORY} is shorter than the device says")
            if chunk != _ZEROS[: len(chunk)]:
                return position
            position = _next_data(memory.fileno(), position + len(chunk))
    return None


def _next_data(handle: int, offset: int) -> int | None:
    try:
        return os.lseek(handle, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise
