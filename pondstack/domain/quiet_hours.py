"""Times of each day, in UTC, in which nothing begins by itself. Pure."""

from dataclasses import dataclass
from datetime import time

from pondstack.domain.errors import BadRequest


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A time of each day; over midnight where it ends before it begins."""

    begin: time
    end: time

    @classmethod
    def parse(cls, text: str, option: str) -> "QuietHours":
        """Return `HH:MM-HH:MM` of an option; raises BadRequest."""
        first, dash, last = text.strip().partition("-")
        try:
            found = cls(_time(first), _time(last))
        except ValueError as error:
            raise BadRequest(f"{option} {text!r} is wrong ({error}); it must be as 22:00-06:00, UTC") from None
        if not dash or found.begin == found.end:
            raise BadRequest(f"{option} {text!r} is no time of the day; it must be as 22:00-06:00, UTC")
        return found

    def cover(self, moment: time) -> bool:
        """Return whether a moment is in them."""
        if self.begin < self.end:
            return self.begin <= moment < self.end
        return moment >= self.begin or moment < self.end


def _time(text: str) -> time:
    hours, colon, minutes = text.strip().partition(":")
    if not (colon and hours.isdigit() and minutes.isdigit() and len(minutes) == 2):
        raise ValueError("a time is HH:MM")
    return time(int(hours), int(minutes))
