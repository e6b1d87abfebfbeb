"""One object in each process, made at first use: threads and connections do not survive a fork."""

import os
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Stoppable(Protocol):
    """What has a thread."""

    def stop(self) -> None:
        """End the thread."""


T = TypeVar("T", bound=Stoppable)


class PerProcess(Generic[T]):
    """Holds this process's object; thread-safe."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._by_process: dict[int, T] = {}

    def get(self) -> T:
        """Return it."""
        pid = os.getpid()
        found = self._by_process.get(pid)
        if found is not None:
            return found
        with self._lock:
            if pid not in self._by_process:
                self._by_process = {pid: self._make()}
            return self._by_process[pid]

    def reset(self, replacement: T | None = None) -> None:
        """Stop and forget it; tests may put another in its place."""
        with self._lock:
            old, self._by_process = self._by_process, {}
            if replacement is not None:
                self._by_process[os.getpid()] = replacement
        for item in old.values():
            item.stop()
