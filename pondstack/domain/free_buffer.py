"""How many free slices of a pool are kept back, so that a VM start does not wait for memory that is on its way back.

Taking memory offline is too slow for a VM start; a buffer of free slices bridges it, and fills again when hosts give
memory back (Pond section 4.2). What it must bridge is what starts take while memory is on its way back, which is
measured: Finding 10 reports how fast that is for 99.99 % of starts, and no fixed number is right for all racks. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

COVERED = 0.95
"""The share of starts, and of slices given back, that the size is made for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the options allow: `least` slices or more, up to `most_percent` of a pool's slices if that is more."""

    least: int = 1
    most_percent: int = 10

    def most(self, slices_total: int) -> int:
        """Return the most slices that may be kept back of a pool."""
        return max(self.least, slices_total * self.most_percent // 100)


@dataclass(frozen=True, slots=True)
class Taken:
    """Slices that a start took, or asked for and missed; `at` in seconds of the database's clock."""

    at: float
    slices: int


@dataclass(frozen=True, slots=True)
class Churn:
    """What happened to a pool lately: what was taken, oldest first, and how long each slice needed to come back."""

    taken: Sequence[Taken] = ()
    give_back_seconds: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class FreeBuffer:
    """The size of a pool's buffer, and why. `give_back_seconds` None: nothing came back lately.

    `needed_slices`: what the rule asks for, before the bounds; `starts`: how many it rests on. `misses`: starts that
    found too few free slices although Placement had admitted them, since the pool was registered.
    """

    slices: int = 1
    needed_slices: int = 0
    give_back_seconds: float | None = None
    starts: int = 0
    misses: int = 0

    def to_record(self) -> dict[str, Any]:
        """Return it as the ledger keeps it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_record(cls, record: dict[str, Any] | None) -> "FreeBuffer":
        """Return what the ledger keeps; None is a pool that no leader of this release has sized yet."""
        return cls(**{name: record[name] for name in cls.__slots__ if name in record}) if record else UNSIZED


UNSIZED = FreeBuffer()
"""Of a pool that no leader has sized yet: what was kept back before buffers were sized."""


def covering(values: Sequence[float]) -> float | None:
    """Return the least of the values that COVERED of them do not exceed, None of none."""
    return sorted(values)[ceil(len(values) * COVERED) - 1] if values else None


def demand(taken: Sequence[Taken], seconds: float) -> int:
    """Return how many slices are taken within `seconds` from a start, in COVERED of all starts; it is one of them."""
    sums: list[float] = []
    total, end = 0, 0
    for item in taken:
        while end < len(taken) and taken[end].at <= item.at + seconds:
            total += taken[end].slices
            end += 1
        sums.append(total)
        total -= item.slices
    return int(covering(sums) or 0)


def needed(churn: Churn) -> FreeBuffer:
    """Return what the rule asks for, without bounds: the demand while a slice is on its way back."""
    seconds = covering(churn.give_back_seconds)
    slices = 0 if seconds is None else demand(churn.taken, seconds)
    rounded = None if seconds is None else round(seconds, 1)
    return FreeBuffer(slices, slices, rounded, len(churn.taken))


def bounded(wanted: FreeBuffer, bounds: Bounds, slices_total: int) -> FreeBuffer:
    """Return a size within the bounds."""
    return replace(wanted, slices=max(bounds.least, min(wanted.slices, bounds.most(slices_total))))


@dataclass(frozen=True, slots=True)
class Shrinking:
    """A buffer that is to shrink: since when a smaller size is right, and the largest that was right since then."""

    since: float
    slices: int


def settle(
    present: FreeBuffer, wanted: FreeBuffer, hold_seconds: float, shrinking: Shrinking | None, now: float
) -> tuple[FreeBuffer, Shrinking | None]:
    """Return the buffer that follows `present`, and what to remember: it grows at once and shrinks late.

    Both are within the bounds. What Placement is told would go up and down with each burst of starts otherwise.
    """
    if wanted.slices >= present.slices:
        return wanted, None
    shrinking = shrinking or Shrinking(now, wanted.slices)
    shrinking = replace(shrinking, slices=max(shrinking.slices, wanted.slices))
    if now - shrinking.since >= hold_seconds:
        return replace(wanted, slices=shrinking.slices), None
    return replace(wanted, slices=present.slices), shrinking
