"""Folds of VMs, nested and forward in time, so that nothing is judged by what has seen it.

The scheme, which was written down before it was run (nested cross-validation: Varma and Simon 2006, Cawley and Talbot
2010; forward in time as in Pond 6.4.2):

- VM numbers, not starts, are dealt into OUTER folds, by a seed. A number is one VM in all months.
- In an outer fold, the model learns from the weeks before the cut of the VMs outside the fold, and is judged on the
  weeks after the cut of the VMs inside it. So each later VM-week is judged once.
- Settings and margins of that fold are chosen by INNER folds of the VMs that it learns from, in the weeks that it
  learns from. Nothing of the fold's own VMs, and nothing after the cut, is in that choice.

The cut is one moment for all folds. A fold that trains on a VM that it judges, or on what was not over when its tests
begin, cannot be made.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.ml.bitbrains import DAY_HOURS, HOUR, WEEK_DAYS, Start, Trace

TRAIN_UNTIL = 0.6
"""Share of the whole weeks that training may see: its weeks have ended by then."""
OUTER, INNER = 10, 5
LEAST_VMS = 20
LEAST_TRAIN = 40


class Leak(ValueError):
    """A fold would be judged by what has seen it; the text names a VM."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Starts to learn from, and starts of other VMs to judge. `until`: when learning ended; raises Leak."""

    train: Sequence[Start]
    test: Sequence[Start]
    until: datetime

    def __post_init__(self) -> None:
        both = {item.number for item in self.train} & {item.number for item in self.test}
        if both:
            raise Leak(f"VM {min(both)} is in training and in test: deal whole VMs into folds")
        late = [item for item in self.train if item.example.ended_at > self.until]
        if late:
            raise Leak(f"a week of VM {late[0].number} ended after {self.until}, when training has ended")


@dataclass(frozen=True, slots=True)
class Outer(Fold):
    """A fold whose tests begin after training has ended; raises Leak."""

    def __post_init__(self) -> None:
        Fold.__post_init__(self)
        early = [item for item in self.test if item.example.as_of < self.until]
        if early:
            raise Leak(f"a test of VM {early[0].number} began before {self.until}, when training has ended")


def cut(trace: Trace) -> datetime:
    """Return the moment, between two weeks, by which training has ended and tests have not begun."""
    weeks = min(max(1, round(trace.weeks * TRAIN_UNTIL)), trace.weeks - 1)
    return trace.begin + weeks * WEEK_DAYS * DAY_HOURS * HOUR


def outer(trace: Trace, seed: int, *, history: bool) -> list[Outer]:
    """Return folds that judge each later start once; `history`: of those that have one, else nobody has one."""
    until = cut(trace)
    starts = trace.starts if history else [item.forgotten() for item in trace.starts]
    early = [item for item in starts if item.example.ended_at <= until]
    late = [item for item in starts if item.example.as_of >= until and (item.example.history or not history)]
    return [
        Outer(_but(early, chosen), _only(late, chosen), until)
        for chosen in _dealt({item.number for item in late}, OUTER, seed)
    ]


def inner(fold: Outer, seed: int, *, history: bool) -> list[Fold]:
    """Return folds of what a fold learns from, by VM; in each, all weeks before the cut."""
    return [
        Fold(
            _but(fold.train, chosen), [item for item in _only(fold.train, chosen) if _counts(item, history)], fold.until
        )
        for chosen in _dealt({item.number for item in fold.train}, INNER, seed)
    ]


def too_small(trace: Trace) -> str:
    """Return why a trace says nothing, "" for one that may."""
    if trace.weeks < 3:
        return f"the trace covers {trace.weeks} whole weeks; at least 3 are needed: to remember, to learn from, to test"
    tests = outer(trace, 0, history=True)
    vms = len({item.number for fold in tests for item in fold.test})
    train = min((sum(_counts(item, True) for item in fold.train) for fold in tests), default=0)
    if vms < LEAST_VMS or train < LEAST_TRAIN:
        return (
            f"{vms} VMs to test and {train} VM-weeks with a history to learn from; at least {LEAST_VMS} and "
            f"{LEAST_TRAIN} are needed (a VM-week has 120 observed hours, and 1 GiB of memory)"
        )
    return ""


def _dealt(numbers: Iterable[str], folds: int, seed: int) -> list[frozenset[str]]:
    ordered = sorted(numbers)
    random.Random(seed).shuffle(ordered)
    return [frozenset(ordered[place::folds]) for place in range(folds)]


def _only(starts: Iterable[Start], chosen: frozenset[str]) -> list[Start]:
    return [item for item in starts if item.number in chosen]


def _but(starts: Iterable[Start], chosen: frozenset[str]) -> list[Start]:
    return [item for item in starts if item.number not in chosen]


def _counts(item: Start, history: bool) -> bool:
    return bool(item.example.history) or not history
