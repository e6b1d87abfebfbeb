"""One lock of a state folder, for threads and processes alike."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DriverLock:
    """Keeps other threads, and other processes with this state folder, from changing what its holder changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it; its holder may take it again."""
        with self._threads:
            if self._depth:
                yield
                return
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._depth += 1
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                self._depth -= 1
                os.close(handle)
