"""Where the agent's parts have work done in the background."""

import threading
from collections.abc import Callable
from typing import Any, Protocol


class Executor(Protocol):
    """Runs what no request waits for, such as telling the controller."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function later."""


class RecurringWork:
    """Work that every heartbeat wants done: while it waits for its turn it is not queued again, so it piles up nowhere.

    What is wanted while it runs makes one more run, as that may not have seen all.
    """

    def __init__(self, executor: Executor, work: Callable[..., None]) -> None:
        self._executor, self._work = executor, work
        self._waits = threading.Event()

    def submit(self, *arguments: Any) -> None:
        """Have it done later, unless it waits already."""
        if not self._waits.is_set():
            self._waits.set()
            self._executor.submit(self._run, *arguments)

    def _run(self, *arguments: Any) -> None:
        self._waits.clear()
        self._work(*arguments)
