"""Intervals between the looks of a thread that polls memory. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Looks follow each other at once for `spin_seconds`, then after pauses that grow with the time waited.

    A pause is 1/`share` of the time waited so far, so that what comes is seen late by that part of it at most;
    `longest_seconds` bounds the pause, and with it what waiting costs of a core.
    """

    spin_seconds: float
    share: int
    longest_seconds: float

    def pause(self, waited_seconds: float) -> float:
        """Return the pause in seconds after so many seconds without anything."""
        if waited_seconds < self.spin_seconds:
            return 0.0
        return min(waited_seconds / self.share, self.longest_seconds)


CLIENT = Pace(spin_seconds=0.0002, share=8, longest_seconds=0.005)
"""Of a client that waits for its reply."""

SERVER = Pace(spin_seconds=0.0002, share=4, longest_seconds=0.005)
"""Of a server that waits for requests."""
