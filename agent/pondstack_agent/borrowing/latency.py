"""Latencies of accesses in bounded memory: counters per size class, of this window and the one before."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

_SUB_BITS = 3
"""Eight classes per power of two: what is shown is at most one eighth too high."""
_CLASSES = 48 << _SUB_BITS

WINDOW_SECONDS = 300.0


def class_of(nanoseconds: int) -> int:
    """Return the class of a latency; the last one takes all that is longer."""
    if nanoseconds < 1 << _SUB_BITS:
        return max(nanoseconds, 0)
    shift = nanoseconds.bit_length() - 1 - _SUB_BITS
    return min(((shift + 1) << _SUB_BITS) + (nanoseconds >> shift) - (1 << _SUB_BITS), _CLASSES - 1)


def highest_of(number: int) -> int:
    """Return the longest latency of a class, in nanoseconds."""
    if number < 1 << _SUB_BITS:
        return number
    shift = (number >> _SUB_BITS) - 1
    return (((number & ((1 << _SUB_BITS) - 1)) + (1 << _SUB_BITS) + 1) << shift) - 1


def percentile(counts: Sequence[int], percent: float) -> int:
    """Return the latency in nanoseconds that so many percent do not exceed; 0 when nothing was counted."""
    rank, seen = sum(counts) * percent / 100, 0
    for number, count in enumerate(counts):
        seen += count
        if count and seen >= rank:
            return highest_of(number)
    return 0


class Latency:
    """Of one lender. `clock`: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since = clock()
        self._now, self._before = [0] * _CLASSES, [0] * _CLASSES
        self._max_now = self._max_before = 0

    def add(self, nanoseconds: int, count: int = 1) -> None:
        """Count so many accesses of this latency."""
        with self._lock:
            self._turn()
            self._now[class_of(nanoseconds)] += count
            self._max_now = max(self._max_now, nanoseconds)

    def figures(self) -> dict[str, Any]:
        """Return count, p50, p99 and max of the last one or two windows, in microseconds."""
        with self._lock:
            self._turn()
            counts = [sum(pair) for pair in zip(self._now, self._before, strict=True)]
            longest = max(self._max_now, self._max_before)
        p50, p99 = (min(percentile(counts, share), longest) / 1000 for share in (50, 99))
        return {"accesses": sum(counts), "p50_us": p50, "p99_us": p99, "max_us": longest / 1000}

    def _turn(self) -> None:
        passed = self._clock() - self._since
        if passed < WINDOW_SECONDS:
            return
        empty = passed >= 2 * WINDOW_SECONDS
        self._before = [0] * _CLASSES if empty else self._now
        self._max_before = 0 if empty else self._max_now
        self._now, self._max_now = [0] * _CLASSES, 0
        self._since = self._clock()
