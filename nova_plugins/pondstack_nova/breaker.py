"""A circuit breaker: a service that fails again and again is left alone for a while."""

import threading
from collections.abc import Callable

FAILURES_TO_OPEN = 3


class Breaker:
    """Closed until FAILURES_TO_OPEN failures in a row, then open for `retry_seconds()`, then one trial at a time."""

    def __init__(self, clock: Callable[[], float], retry_seconds: Callable[[], float]) -> None:
        self._clock = clock
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_at = 0.0

    def admit(self) -> bool:
        """Say whether a call may be tried now; when the wait is over, one caller is admitted per further wait."""
        with self._lock:
            if self._failures < FAILURES_TO_OPEN:
                return True
            now = self._clock()
            if now - self._opened_at < self._retry_seconds():
                return False
            self._opened_at = now
            return True

    def succeeded(self) -> None:
        """The service answered: close."""
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        """The service did not answer."""
        with self._lock:
            self._failures += 1
            if self._failures == FAILURES_TO_OPEN:
                self._opened_at = self._clock()
