"""One lock per name, for as long as somebody wants it."""

import contextlib
import threading
from collections.abc import Iterator


class NamedLocks:
    """Locks by name; a name that nobody uses costs nothing."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def holding(self, name: str) -> Iterator[None]:
        """Hold the lock of `name`."""
        with self._guard:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[name]
                if users == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = (lock, users - 1)
