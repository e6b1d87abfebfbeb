"""Waiting for a condition, with a deadline that a machine which stands still does not reach."""

import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.1
LATE_SECONDS = 0.5
"""A pause that took so much longer than asked for was a stall of the machine, or of all of us."""


class Deadline:
    """When a wait is over. It moves on by what a pause takes too long: who is waited for stood still as well."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = clock() + seconds
        self._event = threading.Event()

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._ends

    def pause(self, seconds: float = POLL_SECONDS) -> None:
        """Let some time pass."""
        began = self._clock()
        self._event.wait(seconds)
        late = self._clock() - began - seconds
        if late > LATE_SECONDS:
            self._ends += late


def wait_until(condition: Callable[[], bool], timeout_seconds: float, poll_seconds: float = POLL_SECONDS) -> bool:
    """Return True as soon as the condition holds, False when it did not within the time."""
    deadline = Deadline(timeout_seconds)
    while not condition():
        if deadline.over:
            return False
        deadline.pause(poll_seconds)
    return True
