"""Idle threads of futurist's executors that sleep until there is work, or their executor ends.

Futurist's own wake once a second each to look whether they are to end. An RPC server has up to [DEFAULT]
executor_thread_pool_size of them, so that a leader which does nothing had its processor woken 130 times a second.
"""

import atexit
from collections.abc import Callable
from typing import Any

from futurist import _thread

LOOK_SECONDS = 60.0
"""They look so often all the same."""


class _Nothing:
    """Work that wakes the thread that takes it."""

    def run(self) -> None:
        """Do nothing."""


def let_sleep() -> Callable[[], None]:
    """Have all such threads of this process sleep; returns what undoes it and wakes them."""
    worker_class: Any = _thread.ThreadWorker
    before = worker_class.stop, worker_class.run, worker_class.MAX_IDLE_FOR

    def stop(worker: Any) -> None:
        before[0](worker)
        # Without an executor this runs in the collector, perhaps of a thread that holds the queue.
        if worker.executor_ref() is not None:
            worker.work_queue.put(_Nothing())

    def run(worker: Any) -> None:
        before[1](worker)
        # Who woke may not have been who was to end: as it ends, each wakes another one.
        if worker.should_stop:
            worker.work_queue.put(_Nothing())

    def undo() -> None:
        worker_class.stop, worker_class.run, worker_class.MAX_IDLE_FOR = before
        atexit.unregister(wake)
        wake()

    worker_class.stop, worker_class.run, worker_class.MAX_IDLE_FOR = stop, run, LOOK_SECONDS
    # After futurist's own, so that it runs before: that one joins those, too, whose executor is gone.
    atexit.register(wake)
    return undo


def wake() -> None:
    """Have each look now whether it is to end."""
    for reference in _thread._to_be_cleaned.keyrefs():
        worker: Any = reference()
        if worker is not None and worker.is_alive():
            worker.work_queue.put(_Nothing())
