"""A lock per page, by way of a bounded number of them."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_STRIPES = 1024


class PageLocks:
    """Pages whose numbers differ by a multiple of 1024 share a lock. Taken in order, so that nobody waits in a ring."""

    def __init__(self) -> None:
        self._locks = [threading.Lock() for _ in range(_STRIPES)]

    @contextmanager
    def hold(self, pages: Iterable[int]) -> Iterator[None]:
        """Hold the locks of pages."""
        held: list[threading.Lock] = []
        try:
            for stripe in sorted({page % _STRIPES for page in pages}):
                self._locks[stripe].acquire()
                held.append(self._locks[stripe])
            yield
        finally:
            for lock in reversed(held):
                lock.release()
