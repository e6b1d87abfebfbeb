"""Examples to learn from: lifetimes, from wherever they come, with the features that were known before each start."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pondstack.domain.errors import BadRequest
from pondstack.domain.history import Lifetime
from pondstack.domain.telemetry import Source
from pondstack.prediction.features import (
    SETTLED,
    History,
    Record,
    Request,
    label,
    past_records,
    records,
    settled_marks,
)

TIMES = ("created_at", "deleted_at", "sized_at")


class LifetimeSource(Protocol):
    """Where lifetimes come from."""

    def lifetimes(self, since: datetime, until: datetime) -> Iterable[Lifetime]:
        """Return the instances that were there at any time from `since` to `until`, as they are known now."""


class LifetimeFile:
    """JSON lines, one lifetime each: the fields of Lifetime, times in ISO 8601."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lifetimes(self, since: datetime, until: datetime) -> Iterable[Lifetime]:
        """Return the instances of the file; raises BadRequest (which line is wrong, and how), OSError."""
        with self._path.open() as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    item = parse(json.loads(line))
                except (TypeError, ValueError, KeyError) as error:
                    raise BadRequest(
                        f"{self._path}, line {number}: {error}; wanted a JSON object of one lifetime"
                    ) from error
                if item.created_at <= until and (item.deleted_at is None or item.deleted_at >= since):
                    yield item


def usable(items: Iterable[Lifetime], *, synthetic: bool) -> Iterator[Lifetime]:
    """Return those whose labels are measured; made-up ones say nothing of real guests, and come where wanted only."""
    return (item for item in items if synthetic or item.source != Source.SYNTHETIC)


def begun(item: Lifetime) -> datetime:
    """Return since when an instance has the size that its label is of."""
    return item.sized_at or item.created_at


def parse(data: dict[str, Any]) -> Lifetime:
    """Build a lifetime; unknown keys are dropped. Raises TypeError or ValueError."""
    known = {item.name: data[item.name] for item in fields(Lifetime) if item.name in data}
    for name in TIMES:
        known[name] = _time(known[name]) if known.get(name) else None
    known["marks"] = tuple((_time(at), int(mib)) for at, mib in known.get("marks", ()))
    if known.get("judged"):
        at, mib = known["judged"]
        known["judged"] = (_time(at), int(mib))
    if known["created_at"] is None:
        raise ValueError("created_at is missing")
    item = Lifetime(**known)
    numbers = (item.memory_mib, item.vcpus, item.coverage, item.untouched_mib or 0)
    if not all(isinstance(value, int | float) for value in numbers) or item.memory_mib < 1:
        raise ValueError("memory_mib, vcpus, coverage and untouched_mib are numbers, and memory_mib at least 1")
    return item


def dump(item: Lifetime) -> str:
    """Return a lifetime as such a line, without its end."""
    return json.dumps(asdict(item), default=lambda value: value.isoformat(), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Example:
    """One start: what was asked for and known at `as_of`; the share left untouched was known at `ended_at`."""

    request: Request
    as_of: datetime
    ended_at: datetime
    share: float
    history: Sequence[Record]
    marks: Sequence[tuple[datetime, float]] = ()
    """What the share was at earlier moments of a long life."""

    @property
    def untouched_mib(self) -> float:
        """Return what it left untouched."""
        return self.share * self.request.memory_mib

    def known_at(self, moment: datetime) -> "Example | None":
        """Return it as it was known at a moment: its end, or its share so far by its last mark; None: nothing was."""
        if self.ended_at <= moment:
            return self
        marks = [mark for mark in self.marks if mark[0] <= moment]
        return replace(self, ended_at=marks[-1][0], share=marks[-1][1], marks=()) if marks else None


@dataclass(frozen=True, slots=True)
class DataSet:
    """Examples in the order of their starts, the history to predict from now, and a hash of all lifetimes."""

    examples: Sequence[Example]
    history: History
    sha256: str
    sources: dict[str, int]
    """Lifetimes by where their labels come from: measured, or made up."""


def read(source: LifetimeSource, since: datetime, now: datetime, min_coverage: float) -> DataSet:
    """Read what is known now. An instance that still runs is an example once it has run for a day."""
    items = sorted(source.lifetimes(since, now), key=lambda item: (begun(item), item.instance_uuid))
    digest = hashlib.sha256()
    for item in items:
        digest.update(dump(item).encode() + b"\n")
    return DataSet(
        examples(items, now, min_coverage),
        History(records(items, now, min_coverage)),
        digest.hexdigest(),
        Counter(str(item.source) for item in items),
    )


def examples(items: Sequence[Lifetime], now: datetime, min_coverage: float) -> list[Example]:
    """Return the examples of lifetimes, each with the records of its project that were complete when it started."""
    past = History(past_records(items, now, min_coverage))
    found = []
    for item in items:
        share = label(item, min_coverage)
        running = item.deleted_at is None or item.deleted_at > now
        young = running and not item.judged and now - begun(item) < SETTLED
        if share is None or begun(item) > now or young:
            continue
        end = now if item.deleted_at is None else min(item.deleted_at, now)
        history = past.before(item.project_id, begun(item))
        found.append(Example(request_of(item), begun(item), end, share, history, settled_marks(item)))
    return sorted(found, key=lambda example: example.as_of)


def request_of(item: Lifetime) -> Request:
    """Return what was asked for."""
    return Request(item.project_id, item.memory_mib, item.vcpus, item.flavor_name, item.image_os, item.zone)


def _time(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
