"""How many mitigations may begin now: rates of each host and of the rack, and quiet hours. Pure; times are UTC."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pondstack.domain.quiet_hours import QuietHours

HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Rates:
    """The most mitigations that begin within an hour, and that are under way at a time."""

    host_per_hour: int
    rack_per_hour: int
    host_at_a_time: int
    rack_at_a_time: int


@dataclass(frozen=True, slots=True)
class Past:
    """A mitigation that there was, or that is under way (`open`), whoever began it; `age_seconds` since it began.

    `failed`: it ended without effect, and may be tried again. Else it is done, or an operator put an end to it.
    """

    consumer_uuid: str
    host: str
    open: bool
    age_seconds: float
    failed: bool = False

    @property
    def final(self) -> bool:
        """Return whether there is to be no other one of this VM."""
        return not self.open and not self.failed


class Pace:
    """Counts what has begun, and says whether one more may."""

    def __init__(self, past: Iterable[Past], rates: Rates, quiet: Sequence[QuietHours], now: datetime) -> None:
        items = list(past)
        self._rates = rates
        self._begun = Counter(item.host for item in items if item.age_seconds < HOUR_SECONDS)
        self._open = Counter(item.host for item in items if item.open)
        self._quiet = next((hours for hours in quiet if hours.cover(now.time())), None)

    def obstacle(self, host: str) -> str:
        """Return why none may begin on a host now, "" where one may."""
        if self._quiet is not None:
            return f"quiet hours until {self._quiet.end:%H:%M} UTC"
        rates = self._rates
        for have, most, what in (
            (self._open[host], rates.host_at_a_time, f"mitigations are under way on {host}"),
            (self._open.total(), rates.rack_at_a_time, "mitigations are under way in the rack"),
            (self._begun[host], rates.host_per_hour, f"mitigations began on {host} within an hour"),
            (self._begun.total(), rates.rack_per_hour, "mitigations began in the rack within an hour"),
        ):
            if have >= most:
                return f"{have} {what}, of {most} that may"
        return ""

    def begin(self, host: str) -> None:
        """Count one that begins."""
        self._begun[host] += 1
        self._open[host] += 1
