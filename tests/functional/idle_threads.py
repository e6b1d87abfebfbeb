"""Idle threads of futurist's executors that sleep until there is work, or their executor ends.

Futurist's own look again and again whether they are to end, and a test has two hundred of them, each of which wants the
interpreter's lock for it.
"""

from typing import Any
from unittest import mock

import fixtures
from futurist import _thread
from futurist._thread import ThreadWorker

LOOK_SECONDS = 60.0
"""They look so often all the same."""


class _Nothing:
    """Work that wakes the thread that takes it."""

    def run(self) -> None:
        """Do nothing."""


class IdleThreads(fixtures.Fixture):
    """Wakes threads when their executor ends, and lets them sleep until then; those left at the end look as before.

    Nova's base sets the pause of its own tests: LOOK_SECONDS is to be set after it.
    """

    def _setUp(self) -> None:
        plain_stop, plain_run = ThreadWorker.stop, ThreadWorker.run

        def stop(worker: Any) -> None:
            plain_stop(worker)
            # Without an executor this runs in the collector, perhaps of a thread that holds the queue.
            if worker.executor_ref() is not None:
                worker.work_queue.put(_Nothing())

        def run(worker: Any) -> None:
            plain_run(worker)
            # Who woke may not have been who was to end: as it ends, each wakes another one.
            if worker.should_stop:
                worker.work_queue.put(_Nothing())

        for name, method in (("stop", stop), ("run", run)):
            patcher = mock.patch.object(ThreadWorker, name, method)
            patcher.start()
            self.addCleanup(patcher.stop)
        self.addCleanup(_look_again)
        self.addCleanup(setattr, ThreadWorker, "MAX_IDLE_FOR", ThreadWorker.MAX_IDLE_FOR)


def _look_again() -> None:
    for reference in _thread._to_be_cleaned.keyrefs():
        worker = reference()
        if worker is not None and worker.is_alive():
            worker.work_queue.put(_Nothing())
