"""A view that one background thread per process refreshes; readers of the present one never wait."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

T = TypeVar("T")


class Refreshed(Generic[T]):
    """Holds the latest view. `fetch(now)` asks for one, `now`: somebody waits for it; times: seconds of `clock`."""

    def __init__(
        self,
        name: str,
        fetch: Callable[[bool], T],
        *,
        interval_seconds: float,
        max_age_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._interval = interval_seconds
        self._max_age = max_age_seconds
        self._clock = clock
        self._changed = threading.Condition()
        self._wanted = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._started_at = clock()
        self._view: T | None = None
        self._asked_at = float("-inf")
        self._newest_at = float("-inf")
        self._waited_for = False
        self._tries = 0
        self._failing = False

    def latest(self) -> tuple[T | None, float]:
        """Return the latest view and its age in seconds, however old; None when there never was one. Never waits."""
        self._ensure_thread()
        with self._changed:
            return self._view, self._clock() - self._asked_at

    def stale(self, age_seconds: float) -> bool:
        """Say whether a view of this age is stale."""
        return age_seconds > self._max_age

    def first(self, seconds: float) -> T | None:
        """Return the latest view; where there never was one, wait until `seconds` after the first request for it.

        So a process that finds no controller waits once, and not at each request.
        """
        self._ensure_thread()
        with self._changed:
            left = self._started_at + seconds - self._clock()
            self._changed.wait_for(lambda: self._view is not None or self._stop.is_set(), max(0.0, left))
            return self._view

    def newer(self, timeout_seconds: float) -> T | None:
        """Return a view that was asked for after this call began; None when there is none within the time.

        All waiting requests share one call of the controller, made by the background thread.
        """
        self._ensure_thread()
        with self._changed:
            began, tries = self._clock(), self._tries
            self._waited_for = True
            self._wanted.set()
            # Two tries, when one was under way already: that one may have been answered before we began.
            self._changed.wait_for(
                lambda: self._newest_at >= began or self._tries >= tries + 2 or self._stop.is_set(), timeout_seconds
            )
            return self._view if self._newest_at >= began else None

    def refresh(self, now: bool = False) -> bool:
        """Ask once (what the thread does); False when the controller gave no view, which is logged at the change."""
        asked_at = self._clock()
        try:
            view = self._fetch(now)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the bus, the thread must go on
            level = logging.DEBUG if self._failing or self._stop.is_set() else logging.WARNING
            LOG.log(level, "No %s from pondstack-controller: %s: %s", self._name, type(error).__name__, error)
            self._failing = True
            self._publish(None, asked_at, now)
            return False
        if self._failing:
            LOG.info("There is a %s from pondstack-controller again", self._name)
            self._failing = False
        self._publish(view, asked_at, now)
        return True

    def stop(self) -> None:
        """End the thread; it may still be in a call for some seconds."""
        self._stop.set()
        self._wanted.set()
        with self._changed:
            self._changed.notify_all()

    def _publish(self, view: T | None, asked_at: float, now: bool) -> None:
        with self._changed:
            self._tries += 1
            if view is not None:
                self._view, self._asked_at = view, asked_at
                if now:  # another one may be as old as what the controller keeps
                    self._newest_at = asked_at
            self._changed.notify_all()

    def _ensure_thread(self) -> None:
        if self._thread is not None:
            return
        with self._changed:
            if self._thread is None and not self._stop.is_set():
                self._started_at = self._clock()
                self._thread = threading.Thread(
                    target=self._run, name=f"pondstack-{self._name.replace(' ', '-')}", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._changed:
                now, self._waited_for = self._waited_for, False
                self._wanted.clear()
            self.refresh(now)
            self._wanted.wait(self._interval)
