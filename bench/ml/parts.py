"""What was looked at and what was not: VMs on which settings were chosen, and VMs that are held out for the judgement.

On the trace that settings were chosen on, half of the VMs are held out, by a hash of their numbers. On any other trace
all of them are: nothing was chosen by it.
"""

import hashlib
import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from bench.ml.bitbrains import DAY_HOURS, HOUR, WEEK_DAYS, Start, Trace
from pondstack.prediction.examples import Example

TUNED_ON = "eeea81e86eaed99a42c73ad26dc28ed69e7c25d7a912c9e7a15bd836dcf46899"
"""SHA-256 of the text of the trace that trees, quantile and the shape of the margin were chosen on."""
TRAIN_UNTIL = 0.6
"""Share of the whole weeks that training may see: its weeks have ended by then."""
FOLDS = 5
LEAST_VMS = 20
LEAST_TRAIN = 40


@dataclass(frozen=True, slots=True)
class Fold:
    """Disjoint VMs: some for training, others for a later test."""

    train: list[Example]
    test: list[Start]


@dataclass(frozen=True, slots=True)
class Part:
    """Some VMs of a trace that are tested, and those that training may see besides the ones of another fold."""

    title: str
    tested: frozenset[str]
    seen: frozenset[str]


def parts(trace: Trace) -> list[Part]:
    """Return the parts, the one that is to be judged last."""
    numbers = frozenset(start.number for start in trace.starts)
    if trace.sha256 != TUNED_ON:
        return [Part("held out: all VMs, for no setting was chosen on this trace", numbers, numbers)]
    tuning = frozenset(number for number in numbers if is_tuning(number))
    return [
        Part("TUNING part: VMs on which the settings were chosen, so no proof of anything", tuning, tuning),
        Part("WHOLE trace: half of its VMs are those of the tuning part", numbers, numbers),
        Part("HELD-OUT part: VMs that no choice of a setting has looked at", numbers - tuning, numbers),
    ]


def is_tuning(number: str) -> bool:
    """Return whether settings may be chosen by looking at a VM of the trace that they were chosen on."""
    return hashlib.sha256(f"bench-ml {number}".encode()).digest()[0] % 2 == 0


def cut(trace: Trace) -> datetime:
    """Return the moment, between two weeks, by which training has ended and tests have not begun."""
    weeks = min(max(1, round(trace.weeks * TRAIN_UNTIL)), trace.weeks - 1)
    return trace.begin + weeks * WEEK_DAYS * DAY_HOURS * HOUR


def folds(trace: Trace, part: Part, seed: int, *, history: bool) -> list[Fold]:
    """Return folds that test each VM of a part once; `history`: only starts with an earlier week, else none has one."""
    until, numbers = cut(trace), sorted(part.tested)
    random.Random(seed).shuffle(numbers)
    found = []
    for place in range(FOLDS):
        chosen = set(numbers[place::FOLDS])
        train = [item.example for item in trace.starts if _learns(item, chosen, part.seen, until)]
        late = (item for item in trace.starts if item.number in chosen and item.example.as_of >= until)
        fold = Fold(train, [item for item in late if item.example.history or not history])
        found.append(fold if history else forgotten(fold))
    return found


def forgotten(fold: Fold) -> Fold:
    """Return the fold without any history: sizes alone are known."""
    test = [replace(item, example=replace(item.example, history=())) for item in fold.test]
    return Fold([replace(item, history=()) for item in fold.train], test)


def too_small(trace: Trace) -> str:
    """Return why a trace says nothing, "" for one that may."""
    if trace.weeks < 2:
        return f"the trace covers {trace.weeks} whole weeks; at least 2 are needed, one to learn from and one to test"
    for part in parts(trace):
        tests = folds(trace, part, 0, history=True)
        vms = len({item.number for fold in tests for item in fold.test})
        train = min(len(fold.train) for fold in tests)
        if vms < LEAST_VMS or train < LEAST_TRAIN:
            return (
                f"{part.title}: {vms} VMs to test and {train} VM-weeks to learn from; at least {LEAST_VMS} and "
                f"{LEAST_TRAIN} are needed (a VM-week has 120 observed hours, and 1 GiB of memory)"
            )
    return ""


def _learns(item: Start, chosen: Collection[str], seen: Collection[str], until: datetime) -> bool:
    return item.number in seen and item.number not in chosen and item.example.ended_at <= until
