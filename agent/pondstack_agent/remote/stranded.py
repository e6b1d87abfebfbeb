"""Guests that run here and wait for pages that the host where they came from does not give: it may be lost.

Such a guest reads nothing wrong, and cannot go on. That it waits is told after the silence that data planes bear; that
its pages are lost, once its source would have given them up, too. Then its nova-compute ends it, with that reason.
"""

import time
from collections.abc import Callable
from typing import Any

from oslo_log import log

from pondstack_agent.data_plane.views import HandoverView
from pondstack_agent.remote.handovers import HandoverLimits

LOG = log.getLogger(__name__)

_HERE = frozenset({"complete", "over"})
"""States of a hand-over at the destination in which it lacks nothing."""


def lacks_pages(seen: HandoverView | None) -> bool:
    """Return whether a guest that came has pages that are not here, with nobody to fetch them from now."""
    return seen is not None and not seen.connected and seen.state not in _HERE


class StrandedGuests:
    """Of one agent, since it runs. Thread-safe: calls of one guest are in order."""

    def __init__(self, limits: HandoverLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._since: dict[str, float] = {}
        self._told: set[tuple[str, bool]] = set()

    def look(self, guest: str, seen: HandoverView | None) -> None:
        """Note how far a guest is that has come to this host; None: it lacks nothing, or is not here."""
        if not lacks_pages(seen):
            self._since.pop(guest, None)
            self._told -= {(guest, True), (guest, False)}
            return
        seconds = self._clock() - self._since.setdefault(guest, self._clock())
        if self._waits(seconds):
            self._tell(guest, seconds)

    def seconds(self, guest: str) -> float:
        """Return how long a guest has waited, 0 for one that has not."""
        since = self._since.get(guest)
        return 0.0 if since is None else self._clock() - since

    def lost(self) -> list[str]:
        """Return the guests whose pages are lost."""
        return sorted(guest for guest in tuple(self._since) if self._is_lost(self.seconds(guest)))

    def problem(self, guest: str) -> str:
        """Return what is wrong with a guest, '' for nothing."""
        seconds = self.seconds(guest)
        if not self._waits(seconds):
            return ""
        end = "is ended" if self._is_lost(seconds) else f"is ended after {self._limits.abandoned_seconds:.0f} s"
        return (
            f"it waits for {seconds:.0f} s for pages that the host has where it came from: start the data plane there; "
            f"where that host is lost, hard reboot the server. It {end}"
        )

    def reported(self) -> list[dict[str, Any]]:
        """Return what a report says of guests that wait."""
        waiting = {guest: self.seconds(guest) for guest in tuple(self._since)}
        return [
            {"consumer_uuid": guest, "seconds": int(seconds), "lost": self._is_lost(seconds)}
            for guest, seconds in sorted(waiting.items())
            if self._waits(seconds)
        ]

    def _waits(self, seconds: float) -> bool:
        return seconds > self._limits.silence_seconds

    def _is_lost(self, seconds: float) -> bool:
        return seconds > self._limits.abandoned_seconds

    def _tell(self, guest: str, seconds: float) -> None:
        lost = self._is_lost(seconds)
        if (guest, lost) in self._told:
            return
        self._told.add((guest, lost))
        if lost:
            LOG.error("Guest %s has lost pages with the host where it came from: its nova-compute ends it", guest)
        else:
            LOG.warning("Guest %s: %s", guest, self.problem(guest))
