"""A pool device that lets nobody in for a while, for tests that must act in the middle of a grant."""

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pondstack.devices.emulated_files import SLICES
from pondstack_rack.wait import wait_until

BREAK_SECONDS = Path("/proc/sys/fs/lease-break-time")
"""After so long the kernel lets those in who wait."""


@contextmanager
def grants_held(device: Path) -> Iterator[None]:
    """Keep every grant waiting, and all zeroing: each opens this file first (a write lease, fcntl(2) F_SETLEASE).

    Fails when the kernel has let somebody in meanwhile: what was to be held was not.
    """
    handle = os.open(device / SLICES, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # The holder is told of everybody who waits, by SIGIO, which would end it.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        assert wait_until(lambda: _leased(handle), 60.0, poll_seconds=0.05), f"{device} is in use all the time"
        ends = time.monotonic() + int(BREAK_SECONDS.read_text())
        yield
        assert time.monotonic() < ends, f"held for longer than {BREAK_SECONDS} allows"
    finally:
        os.close(handle)


def _leased(handle: int) -> bool:
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return False  # somebody has it open
        raise
    return True
