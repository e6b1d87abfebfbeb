"""Counts the pages that a guest asked for and that were not resident, over all lives of its data plane."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pondstack.domain.errors import PondError
from pondstack_agent.data_plane.views import GuestView

LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Pages:
    """`asked`: by accesses, of pages that were evicted; `lenders`: of all that came, how many did so from lenders."""

    asked: int = 0
    came: int = 0
    lenders: int = 0

    def __add__(self, other: "Pages") -> "Pages":
        return Pages(self.asked + other.asked, self.came + other.came, self.lenders + other.lenders)

    def __sub__(self, other: "Pages") -> "Pages":
        return Pages(self.asked - other.asked, self.came - other.came, self.lenders - other.lenders)

    @classmethod
    def of(cls, view: GuestView) -> "Pages":
        """Return what one life of a data plane has counted. Pages that were read ahead, nobody has asked for."""
        counters, store = view.counters or {}, view.store or {}
        came = int(counters.get("loads", 0))
        return cls(came - int(counters.get("read_ahead", 0)), came, int(store.get("lender_reads", 0)))


class PageMeter:
    """Looks many times a second, so that what a life had counted when it was killed is nearly known: never too much.

    `life`: which one it is now; `view` may raise PondError while none answers.
    """

    def __init__(self, life: Callable[[], int], view: Callable[[], GuestView | None]) -> None:
        self._life, self._view = life, view
        self._lives: dict[int, Pages] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pages", daemon=True)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look all the time."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    @property
    def total(self) -> Pages:
        """What was counted up to the last look."""
        with self._lock:
            return sum(self._lives.values(), Pages())

    def look(self) -> None:
        """Look once."""
        before = self._life()
        try:
            view = self._view()
        except PondError:
            return
        if view is not None and view.counters is not None and self._life() == before:
            with self._lock:
                self._lives[before] = Pages.of(view)

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look()
