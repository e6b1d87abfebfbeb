"""The controller's worker threads, one for each task: woken, or periodic.

A task that fails is logged and tried again: a bug must end neither kind of thread.
"""

import threading
from collections.abc import Callable

from oslo_log import log

from pondstack.domain.errors import NotLeader, PondError

LOG = log.getLogger(__name__)
STOP_SECONDS = 60.0


class WakeableWorker:
    """Runs `task` at the start and `settle_seconds` after a wake(); several wakes meanwhile make one run."""

    def __init__(self, name: str, task: Callable[[], object], settle_seconds: float = 0.0) -> None:
        self._task = task
        self._settle_seconds = settle_seconds
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether the worker was told to stop, so that the task should end soon."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Start the thread; the first run is at once."""
        self._wanted.set()
        self._thread.start()

    def wake(self) -> None:
        """Have the task run soon."""
        self._wanted.set()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End after the present run; wait for it for `seconds` at most."""
        self._stopping.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        settle = 0.0  # the first run is at once
        while True:
            self._wanted.wait()
            if settle:
                self._stopping.wait(settle)
            settle = self._settle_seconds
            self._wanted.clear()
            if self._stopping.is_set():
                return
            try:
                self._task()
            except NotLeader as error:
                LOG.error("The thread %s ends: %s", self._thread.name, error)
                return
            except PondError as error:
                LOG.warning("The thread %s tries again at the next round: %s", self._thread.name, error)
            except Exception:
                # A bug must not end the thread: slices would wait for ever to be sanitised.
                LOG.exception("The thread %s met an unknown error", self._thread.name)


class PeriodicWorker:
    """Runs `task` at the start, `seconds` after each end of it, and soon after wake(). Logs changes only."""

    def __init__(self, name: str, seconds: float, task: Callable[[], object]) -> None:
        self._name = name
        self._seconds = seconds
        self._task = task
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._trouble = ""

    def start(self) -> None:
        """Start the thread; the first run is at once."""
        self._thread.start()

    def wake(self) -> None:
        """Have the task run soon."""
        self._wanted.set()

    def stop(self, seconds: float) -> bool:
        """End after the present run; returns whether that was within `seconds`."""
        self._stopping.set()
        self._wanted.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.clear()
            try:
                self._task()
            except PondError as error:
                self._note(error.message)
            except Exception:
                # A bug must not end the thread: without it the lease is lost, or never taken.
                LOG.exception("The thread %s met an unknown error", self._name)
            else:
                self._note("")
            self._wanted.wait(self._seconds)

    def _note(self, trouble: str) -> None:
        if trouble and not self._trouble:
            LOG.warning("The thread %s fails and is tried again: %s", self._name, trouble)
        elif self._trouble and not trouble:
            LOG.info("The thread %s works again", self._name)
        self._trouble = trouble
