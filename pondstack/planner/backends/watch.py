"""Ends a run whose cluster is gone: joblib waits for its parts without end."""

import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

EVERY_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
"""Time for a worker to be begun again, and for a network to come back."""


MOST_CHARACTERS = 400


def one_line(error: BaseException) -> str:
    """Return an error in one line: between the first and the last one, those of the libraries have tracebacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ... ".join(dict.fromkeys((lines[0], lines[-1]))) if lines else ""
    return ": ".join(part for part in (type(error).__name__, text) if part)[:MOST_CHARACTERS]


class ClusterLost(BaseException):
    """Ends whatever the main thread does, as KeyboardInterrupt does. Its text says what the cluster lacks."""


class Watch:
    """Raises ClusterLost in the main thread, which begins it, where a cluster lacks something for PATIENCE_SECONDS.

    `lack`: says what a cluster lacks, empty for nothing; raises, or does not return, where it does not answer. `lost`:
    what it lacked then, as what is cleaned up may raise something else.
    """

    def __init__(self, lack: Callable[[], str]) -> None:
        self.lost = ""
        self._lack, self._ended, self._sending = lack, threading.Event(), threading.Lock()
        self._well, self._last = threading.Event(), ""
        self._before: Any = None

    def __enter__(self) -> "Watch":
        # Not SIGINT: a shell has commands in its background ignore that.
        self._before = signal.signal(signal.SIGUSR1, self._raise)
        # Two threads: a question to a cluster that is gone may never return.
        for work in (self._ask, self._look):
            threading.Thread(target=work, name=f"cluster-watch-{work.__name__}", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        with self._sending:  # So that no signal comes afterwards.
            signal.signal(signal.SIGUSR1, self._before)

    def _ask(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            self._last = "does not answer"
            try:
                self._last = self._lack()
            except Exception as error:  # noqa: BLE001 - the libraries tell of a lost cluster by any error
                self._last = f"does not answer ({one_line(error)})"
            if not self._last:
                self._well.set()

    def _look(self) -> None:
        # By rounds and not by a clock: where this process is stopped, or its machine sleeps, the cluster is not lost.
        waited = 0.0
        while not self._ended.wait(EVERY_SECONDS):
            waited = 0.0 if self._well.is_set() else waited + EVERY_SECONDS
            self._well.clear()
            # Again and again: what is cleaned up then may wait for the cluster too.
            if waited >= PATIENCE_SECONDS:
                self._send()

    def _send(self) -> None:
        with self._sending:
            if not self._ended.is_set():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def _raise(self, _signal: int, _frame: object) -> None:
        if not self._ended.is_set():
            self.lost = self.lost or self._last or "does not answer"
            raise ClusterLost(self.lost)
