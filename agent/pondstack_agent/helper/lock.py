"""The lock of a helper's folder: held for all of its process's life, whatever its socket does."""

import fcntl
import json
import os
import struct
from pathlib import Path
from typing import Any

from pondstack.domain.errors import Unavailable
from pondstack.domain.shape import Fields, Whole

_FLOCK = struct.Struct("hhqqi4x")
"""The kernel's struct flock: type, whence, start, length, process."""
_WHOLE = (os.SEEK_SET, 0, 0, 0)
_STATE = Fields({"pid": Whole(2, 2**22)}, others=True)


def hold_lock(file: Path) -> int:
    """Return the descriptor of a folder's lock, which this process and its child hold; raises BlockingIOError."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.parent.chmod(0o700)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # A lock of the open file, which fork passes on, and which others can ask about without taking it.
    fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, *_WHOLE))
    return handle


def lock_held(file: Path) -> bool:
    """Return whether the lock's process lives; raises OSError when that cannot be told."""
    try:
        handle = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, *_WHOLE))
    finally:
        os.close(handle)
    return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


def write_state(lock: int, **state: Any) -> None:
    """Write into the lock's file that this process holds it, and what it is."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"pid": os.getpid(), **state}).encode(), 0)


def pid_of(file: Path) -> int:
    """Return the process id that the lock's newest holder wrote down; raises OSError, Unavailable.

    Whoever asks may kill it: 0 would be the asker's own group, -1 everybody, and 1 is init.
    """
    try:
        state = json.loads(file.read_text())
        _STATE.check(state)
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"{file} does not say whose it is ({error}); find its process, which locks it") from error
    pid: int = state["pid"]
    return pid
