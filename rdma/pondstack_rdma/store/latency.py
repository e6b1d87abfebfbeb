"""Latencies in bounded memory: a histogram with buckets that are an eighth of their value wide."""

import math
from dataclasses import dataclass
from threading import Lock

_STEPS = 8
_BUCKETS = 64 * _STEPS


@dataclass(frozen=True, slots=True)
class Percentiles:
    """In seconds; at most an eighth above what was measured, but `worst` is exact. NaN when nothing was measured."""

    count: int
    p50: float
    p99: float
    worst: float


class Latencies:
    """Counts durations; 4 KiB whatever their number. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts = [0] * _BUCKETS
        self._worst = 0.0

    def record(self, seconds: float) -> None:
        """Count one duration."""
        bucket = bucket_of(max(0, int(seconds * 1e9)))
        with self._lock:
            self._counts[bucket] += 1
            self._worst = max(self._worst, seconds)

    def percentiles(self) -> Percentiles:
        """Return what was seen so far."""
        with self._lock:
            counts, worst = list(self._counts), self._worst
        total = sum(counts)
        if not total:
            return Percentiles(0, math.nan, math.nan, math.nan)
        p50, p99 = (min(_upper(_rank(counts, -(-total * percent // 100))) / 1e9, worst) for percent in (50, 99))
        return Percentiles(total, p50, p99, worst)


def bucket_of(nanoseconds: int) -> int:
    """Return the bucket: the position of the highest bit, and the three bits behind it."""
    if nanoseconds < _STEPS:
        return nanoseconds
    shift = nanoseconds.bit_length() - 4
    return min((shift + 1) * _STEPS + ((nanoseconds >> shift) & (_STEPS - 1)), _BUCKETS - 1)


def _upper(bucket: int) -> int:
    """Return the largest value of a bucket."""
    if bucket < _STEPS:
        return bucket
    shift, step = bucket // _STEPS - 1, bucket % _STEPS
    return ((_STEPS + step + 1) << shift) - 1


def _rank(counts: list[int], rank: int) -> int:
    """Return the bucket of the value with this rank, from 1 on."""
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if seen >= rank:
            return bucket
    return len(counts) - 1
