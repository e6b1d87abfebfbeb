"""Files of an emulated device, for its controller side, its hosts and the head of a guest. Standard library only.

device.json        {"serial", "slice_mib", "slices_total"}, written once
memory             one sparse file; slice i starts at i * slice_mib MiB
permissions.json   {"epoch": highest seen, "permissions": {"<slice>": {"host", "tag", "epoch"}}}
lock               flock(2) around every change of permissions.json
"""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pondstack.domain.errors import DeviceFailed

DEVICE, MEMORY, PERMISSIONS, LOCK = "device.json", "memory", "permissions.json", "lock"
_CHUNK_BYTES = 1024 * 1024
_ZEROS = bytes(_CHUNK_BYTES)


@contextlib.contextmanager
def device_errors(path: Path) -> Iterator[None]:
    """Turn what a missing or broken device folder raises into DeviceFailed."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeviceFailed(
            f"the emulated pool device {path} does not answer ({type(error).__name__}: {error}); check that the folder "
            "is there and whole, or make one with `pondstack-manage device create`"
        ) from error


def read_json(path: Path, device: Path) -> Any:
    """Return a JSON file of a device; raises DeviceFailed."""
    with device_errors(device):
        return json.loads(path.read_text())


@contextlib.contextmanager
def locked(device: Path) -> Iterator[None]:
    """Hold the device's lock, against other threads and processes alike; raises DeviceFailed."""
    with device_errors(device):
        handle = os.open(device / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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
