"""Features of an instance that is about to start (Pond 4.4, Fig. 14): what is known before, and nothing later. Pure.

A feature that is not known is NaN, never zero. The untouched memory of a project counts as a share of each instance's.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pondstack.domain.history import Lifetime

GROUPS: dict[str, tuple[str, ...]] = {
    "size": ("memory_mib", "vcpus"),
    "image and zone": ("image_os", "zone"),
    "time": ("hour", "weekday"),
    "last week": ("week_p50", "week_p20", "week_p10", "week_p5", "week_least", "week_most", "week_count"),
    "last four weeks": ("weeks_p1", "weeks_p50", "weeks_count"),
}
"""Names of the features by group, in the order of a vector."""
FEATURES: tuple[str, ...] = tuple(name for names in GROUPS.values() for name in names)
LOWEST = FEATURES.index("weeks_p1")
NEWEST = timedelta(days=7)
OLDEST = timedelta(days=28)
SETTLED = timedelta(days=1)
"""Age at which an instance that still runs tells something: before that it has not touched what it will."""
WORDS = 32
"""Most images' systems and zones that a model tells apart; the rarer ones are unknown to it."""


class FutureRecord(ValueError):
    """A record is younger than the moment that features are computed for: it would leak into training."""


@dataclass(frozen=True, slots=True)
class Record:
    """Share (0 to 1) of an instance's memory that it left untouched, known since `seen_at`.

    `until`: when a newer record of the same instance took its place; None: none has.
    """

    project_id: str
    share: float
    seen_at: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """An instance that is about to start; "" is unknown."""

    project_id: str
    memory_mib: int
    vcpus: int
    flavor_name: str = ""
    image_os: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words that a model knows, the most frequent first; the feature is a word's place."""

    image_os: tuple[str, ...] = ()
    zone: tuple[str, ...] = ()

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "Vocabulary":
        """Return the words of a training set."""
        systems: Counter[str] = Counter()
        zones: Counter[str] = Counter()
        for item in requests:
            systems[item.image_os] += 1
            zones[item.zone] += 1
        return cls(_most_frequent(systems), _most_frequent(zones))


class History:
    """Records of all projects, by time."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._records: dict[str, list[Record]] = defaultdict(list)
        for item in records:
            self._records[item.project_id].append(item)
        for items in self._records.values():
            items.sort(key=_seen_at)

    def projects(self) -> list[str]:
        """Return the projects that have a record."""
        return sorted(self._records)

    def before(self, project_id: str, as_of: datetime) -> Sequence[Record]:
        """Return a project's records of the four weeks before `as_of`, the oldest first; one of each instance."""
        items = self._records.get(project_id, [])
        known = items[bisect_left(items, as_of - OLDEST, key=_seen_at) : bisect_right(items, as_of, key=_seen_at)]
        return [item for item in known if item.until is None or item.until > as_of]


def records(lifetimes: Iterable[Lifetime], now: datetime, min_coverage: float) -> list[Record]:
    """Return what ended instances left untouched, and those that run, seen `now`.

    A guest's untouched memory only falls. One that has run for less than a day counts if it has already touched more
    than all others of its project, or the QoS monitor found it over-predicted: that is no good news that may still
    change.
    """
    settled: list[Record] = []
    young: list[Record] = []
    for item in lifetimes:
        share = label(item, min_coverage)
        if share is None:
            continue
        seen_at = min(item.deleted_at or now, now)
        ended = item.deleted_at is not None and item.deleted_at <= now
        record = Record(item.project_id, share, seen_at)
        (settled if ended or item.judged or now - (item.sized_at or item.created_at) >= SETTLED else young).append(
            record
        )
    least: dict[str, float] = {}
    for record in settled:
        least[record.project_id] = min(record.share, least.get(record.project_id, 1.0))
    return settled + [record for record in young if record.share < least.get(record.project_id, 0.0)]


def past_records(lifetimes: Iterable[Lifetime], now: datetime, min_coverage: float) -> list[Record]:
    """Return what was known at each moment before `now`: an instance's label at its end, and so far by its marks.

    So a project of which no instance has ended for weeks has a history, too. The label that one has now says nothing of
    what it had touched before: of its life only the marks count.
    """
    found = []
    for item in lifetimes:
        ended = item.deleted_at if item.deleted_at is not None and item.deleted_at <= now else None
        marks = [(at, share) for at, share in settled_marks(item) if at <= now and (ended is None or at < ended)]
        for place, (at, share) in enumerate(marks):
            until = marks[place + 1][0] if place + 1 < len(marks) else ended
            found.append(Record(item.project_id, share, at, until))
        last = label(item, min_coverage)
        if ended is not None and last is not None:
            found.append(Record(item.project_id, last, ended))
    return found


def settled_marks(item: Lifetime) -> list[tuple[datetime, float]]:
    """Return the marks of an instance that was a day old or found over-predicted by then, as shares of its memory."""
    begun = item.sized_at or item.created_at
    marks = [(at, mib) for at, mib in item.marks if at - begun >= SETTLED]
    if item.judged is not None:
        marks = sorted([*marks, item.judged])
    return [(at, share_of(mib, item.memory_mib)) for at, mib in marks]


def label(item: Lifetime, min_coverage: float) -> float | None:
    """Return the share (0 to 1) that an instance left untouched; None where too little of its life was observed."""
    if item.untouched_mib is None or item.memory_mib < 1 or (item.coverage < min_coverage and not item.judged):
        return None
    return share_of(item.untouched_mib, item.memory_mib)


def share_of(untouched_mib: float, memory_mib: int) -> float:
    """Return untouched memory as a share, 0 to 1."""
    return min(max(untouched_mib / memory_mib, 0.0), 1.0)


def vector(request: Request, history: Sequence[Record], as_of: datetime, words: Vocabulary) -> list[float]:
    """Return the features, in the order of FEATURES. Raises FutureRecord for a record younger than `as_of`."""
    for record in history:
        if record.seen_at > as_of:
            raise FutureRecord(
                f"a record of project {record.project_id} was seen at {record.seen_at}, after {as_of}: a feature of "
                "the future; give the records that were known then"
            )
    month = sorted(item.share for item in history if item.seen_at >= as_of - OLDEST)
    week = sorted(item.share for item in history if item.seen_at >= as_of - NEWEST)
    return [
        float(request.memory_mib),
        float(request.vcpus),
        _place(request.image_os, words.image_os),
        _place(request.zone, words.zone),
        float(as_of.hour),
        float(as_of.weekday()),
        *(quantile(week, share) for share in (0.5, 0.2, 0.1, 0.05, 0.0, 1.0)),
        float(len(week)) if history else math.nan,
        quantile(month, 0.01),
        quantile(month, 0.5),
        float(len(month)) if month else math.nan,
    ]


def ceiling(row: Sequence[float]) -> float:
    """Return the most that a prediction may say, of a vector: the lowest percent of its project; 1 without history."""
    lowest = row[LOWEST]
    return 1.0 if math.isnan(lowest) else lowest


def spread(history: Sequence[Record], otherwise: float) -> float:
    """Return the standard deviation of a project's untouched shares; `otherwise` of fewer than two."""
    return statistics.pstdev(item.share for item in history) if len(history) > 1 else otherwise


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of ordered values, between its neighbours; NaN of none."""
    if not ordered:
        return math.nan
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _seen_at(record: Record) -> datetime:
    return record.seen_at


def _place(word: str, words: Sequence[str]) -> float:
    return float(words.index(word)) if word in words else math.nan


def _most_frequent(counts: Counter[str]) -> tuple[str, ...]:
    ordered = sorted((word for word in counts if word), key=lambda word: (-counts[word], word))
    return tuple(ordered[:WORDS])
