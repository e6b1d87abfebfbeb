"""Retries: the one place that decides which calls a client of the controllers repeats, and for how long.

A call is repeated with the same arguments and the same operation id, so that it takes effect once, however often it
arrives. Between two leaders a call reaches nobody, or a former leader; the retry hides both from the caller.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import oslo_messaging

from pondstack.domain.errors import AgentUnavailable, DeviceFailed, SlicesReturning, Unavailable

T = TypeVar("T")

FINAL = (AgentUnavailable, DeviceFailed, SlicesReturning)
"""Unavailable, but it is the leader's answer to this request: a retry at once would get the same."""

LOST = (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure)
"""No answer: the request or its answer was lost, its receiver died, or it takes longer than the attempt."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a client waits, in seconds. Attempts grow longer, so that an answer that is slow and not lost comes."""

    first_seconds: float = 1.0
    growth: float = 1.5
    longest_seconds: float = 10.0
    pause_seconds: float = 0.05
    longest_pause_seconds: float = 0.5


def worth_repeating(error: BaseException) -> bool:
    """Return whether the same call, repeated at once, may get another answer."""
    if isinstance(error, LOST):
        return True
    return isinstance(error, Unavailable) and not isinstance(error, FINAL)


class RetryingCaller:
    """Repeats calls. Clock, sleep and randomness are arguments, so that a simulation can drive it."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform

    def call(self, attempt: Callable[[float], T], deadline_seconds: float) -> T:
        """Return the answer of `attempt(timeout_seconds)`, repeated if need be; raises its last error at the end."""
        ends = self._clock() + deadline_seconds
        timeout, pause = self._policy.first_seconds, self._policy.pause_seconds
        while True:
            try:
                return attempt(max(0.001, min(timeout, ends - self._clock())))
            except Exception as error:
                if not worth_repeating(error):
                    raise
                if isinstance(error, LOST):
                    timeout = min(timeout * self._policy.growth, self._policy.longest_seconds)
                    wait = 0.0
                else:
                    # Jitter: all clients see the same gap, and must not call the new leader at the same moment.
                    wait = self._uniform(pause / 2, pause)
                    pause = min(pause * 2, self._policy.longest_pause_seconds)
                if self._clock() + wait >= ends:
                    raise
                self._sleep(wait)
