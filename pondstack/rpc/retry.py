"""Calling until it is answered: the one place that says what a client of the controllers repeats, and how long.

The same arguments go out again, with the same operation id, so that however often a call arrives it takes effect once.
Between two leaders a call finds nobody, or somebody who leads no more; neither is the caller's business.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import oslo_messaging

from pondstack.domain.errors import AgentUnavailable, DeviceFailed, Unavailable

T = TypeVar("T")

FINAL = (AgentUnavailable, DeviceFailed)
"""Unavailable, but the leader's verdict on this request: it would be the same again."""

LOST = (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure)
"""No answer: the request or its answer was lost, its receiver died, or it takes longer than the attempt."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a client waits, in seconds. Attempts grow: one that is slow, and not lost, has time at last."""

    first_seconds: float = 1.0
    growth: float = 1.5
    longest_seconds: float = 10.0
    pause_seconds: float = 0.05
    longest_pause_seconds: float = 0.5


def worth_repeating(error: BaseException) -> bool:
    """Return whether calling again, at once and with the same arguments, may get another answer."""
    if isinstance(error, LOST):
        return True
    return isinstance(error, Unavailable) and not isinstance(error, FINAL)


class RetryingCaller:
    """Repeats calls. Time, sleep and randomness come in, so that a simulation can drive it."""

    def __init__(
        self,
        patience: RetryPolicy,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform

    def call(self, attempt: Callable[[float], T], deadline_seconds: float) -> T:
        """Return what `attempt(timeout_seconds)` returns at last; raises its last error when the time is over."""
        ends = self._clock() + deadline_seconds
        timeout, pause = self._patience.first_seconds, self._patience.pause_seconds
        while True:
            try:
                return attempt(max(0.001, min(timeout, ends - self._clock())))
            except Exception as error:
                if not worth_repeating(error):
                    raise
                if isinstance(error, LOST):
                    timeout = min(timeout * self._patience.growth, self._patience.longest_seconds)
                    wait = 0.0
                else:
                    # Jitter: all clients meet the same gap, and should not meet the new leader at one moment.
                    wait = self._uniform(pause / 2, pause)
                    pause = min(pause * 2, self._patience.longest_pause_seconds)
                if self._clock() + wait >= ends:
                    raise
                self._sleep(wait)
