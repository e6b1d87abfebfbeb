"""The record of one attachment of emulated slices, and the lock by which a running guest holds it.

`<state dir>/attachments/<allocation uuid>.json` is written once when the slices come online and removed when they go
offline. The head of a guest locks it shared and hands the open file to QEMU: while that process lives, by whatever
name, the kernel keeps the lock and the slices cannot go offline. Standard library only, because the head reads it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

FOLDER = "attachments"


def hold(path: Path) -> int:
    """Lock a record for the life of this process and what it becomes by exec; returns the descriptor.

    Raises FileNotFoundError when the slices have gone offline meanwhile.
    """
    handle = os.open(path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    if os.fstat(handle).st_nlink == 0:
        os.close(handle)
        raise FileNotFoundError(f"{path} was removed")
    os.set_inheritable(handle, True)
    return handle


@contextlib.contextmanager
def unheld(path: Path) -> Iterator[bool]:
    """Try to keep everybody off a record; yields False while a guest holds it. Raises FileNotFoundError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)
