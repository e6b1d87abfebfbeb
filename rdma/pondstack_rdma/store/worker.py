"""A thread that takes turns at something until it is stopped."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

LOG = logging.getLogger(__name__)
_AFTER_FAULT_SECONDS = 1.0


class Thread(Protocol):
    """What can be waited for."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""


def start_thread(name: str, run: Callable[[], None]) -> Thread:
    """Start a daemon thread."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Worker:
    """Calls `turn` again and again: after so many seconds as it returns, or with None once it is woken."""

    def __init__(
        self,
        name: str,
        turn: Callable[[], float | None],
        start: Callable[[str, Callable[[], None]], Thread] = start_thread,
    ) -> None:
        self._name = name
        self._turn = turn
        self._woken = threading.Event()
        self._stopped = False
        self._thread = start(name, self._run)

    def wake(self) -> None:
        """Take a turn soon."""
        self._woken.set()

    def stop(self) -> None:
        """End after the present turn, and wait for that; idempotent."""
        self._stopped = True
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            self._woken.clear()  # before the turn: what comes during it is not missed
            try:
                pause = self._turn()
            except Exception:  # a fault in one turn must not end all further ones
                LOG.exception("%s: a turn failed", self._name)
                pause = _AFTER_FAULT_SECONDS
            if pause is None or pause > 0:
                self._woken.wait(pause)
