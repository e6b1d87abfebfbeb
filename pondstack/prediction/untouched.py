"""From a predicted share to slices, and the curve of untouched memory against over-predictions. Pure (Pond 4.4).

A model predicts a low quantile of the untouched share. A margin is taken off it, one for instances whose project has a
history and one for the others, who are known less well; what is left is rounded down to slices. A margin is a share of
the memory and EXTRA_MIB together: small instances vary more, and each over-prediction counts the same. It is as much
larger as the project's own records are spread (SPREAD, at least FLOOR): who was steady is known better. UM is pool
memory in percent of all memory, OP the percentage of instances that touch more than was predicted.
`python -m bench.ml.tuning` compares them with others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pondstack.domain.share import untouched_mib
from pondstack.prediction.balance import Point

EXTRA_MIB = 4096
SPREAD = 0.1
"""Standard deviation of a project's untouched shares at which a margin is what it says."""
FLOOR = 0.1
"""Spread that is added to each: a few records that are alike prove little."""
NEVER = 2.0
"""A margin that leaves nothing to the pool."""
RARE = 0.05
"""Probability below which a result speaks against a budget."""
FEW = 20
"""Instances with a history, or without, below which nothing of their memory goes to the pool."""
MARGINS: tuple[float, ...] = (*(step / 100 for step in range(-30, 81)), NEVER)


@dataclass(frozen=True, slots=True)
class Case:
    """One instance: the share that a model predicts, and what it left untouched. `known`: its project has a history.

    `spread`: of the project's records, see pondstack.prediction.features.spread.
    """

    share: float
    memory_mib: int
    untouched_mib: float
    known: bool
    spread: float


@dataclass(frozen=True, slots=True)
class Margins:
    """Shares (of an instance's memory) that are taken off a prediction."""

    known: float
    cold: float


@dataclass(frozen=True, slots=True)
class Result:
    """What a rule did to some instances."""

    instances: int
    memory_mib: int
    pool_mib: int
    over: int

    @property
    def um(self) -> float:
        """Return UM in percent."""
        return 100.0 * self.pool_mib / self.memory_mib if self.memory_mib else 0.0

    @property
    def op(self) -> float:
        """Return OP in percent."""
        return 100.0 * self.over / self.instances if self.instances else 0.0

    @property
    def op_bound(self) -> float:
        """Return the OP in percent to expect of the next instance, as if it were over-predicted: for few, careful."""
        return 100.0 * (self.over + 1) / (self.instances + 1) if self.pool_mib else 0.0

    def within(self, budget: float) -> bool:
        """Return whether a rule may be one that keeps to a budget of OP in percent: these would be no rare bad luck."""
        return tail(self.over, self.instances, budget / 100) >= RARE

    def __add__(self, other: "Result") -> "Result":
        return Result(
            self.instances + other.instances,
            self.memory_mib + other.memory_mib,
            self.pool_mib + other.pool_mib,
            self.over + other.over,
        )


def tail(least: int, tries: int, chance: float) -> float:
    """Return the probability of at least so many hits (exact, binomial)."""
    if not 0 < chance < 1:
        return 1.0 if chance >= 1 or least == 0 else 0.0
    odds = chance / (1 - chance)
    term, below = (1 - chance) ** tries, 0.0
    for hits in range(least):
        below += term
        term *= odds * (tries - hits) / (hits + 1)
    return 1.0 - below


def less(share: float, margin: float, memory_mib: int, spread: float) -> float:
    """Return what a margin leaves of a predicted share; `spread`: of the project's records."""
    return share - margin * (1 + EXTRA_MIB / memory_mib) * (FLOOR + spread) / (FLOOR + SPREAD)


def result(cases: Iterable[Case], margins: Margins, slice_mib: int) -> Result:
    """Return what a model with these margins does to these instances."""
    count = memory = pool = over = 0
    for case in cases:
        share = less(case.share, margins.known if case.known else margins.cold, case.memory_mib, case.spread)
        given = untouched_mib(share, case.memory_mib, slice_mib)
        count, memory, pool = count + 1, memory + case.memory_mib, pool + given
        over += given > case.untouched_mib
    return Result(count, memory, pool, over)


def sweep(cases: Sequence[Case], slice_mib: int) -> list[tuple[Margins, Result]]:
    """Return the results by each margin, the same for all."""
    return [(Margins(margin, margin), result(cases, Margins(margin, margin), slice_mib)) for margin in MARGINS]


def _measured(cases: Sequence[Case], slice_mib: int) -> list[tuple[Margins, Result]]:
    """Return the results of all margins, of a few cases only of the one that risks nothing: they say too little."""
    found = sweep(cases, slice_mib)
    return found if len(cases) >= FEW else found[-1:]


def curve(cases: Sequence[Case], slice_mib: int) -> list[Point]:
    """Return the points of the best pairs of margins, by loss: UM against the OP to expect (Eq. 1)."""
    known = _measured([case for case in cases if case.known], slice_mib)
    cold = _measured([case for case in cases if not case.known], slice_mib)
    points = []
    for first, one in known:
        for second, other in cold:
            both = one + other
            setting = {"known": first.known, "cold": second.cold, "measured_op": both.op}
            points.append(Point(both.um, both.op_bound, setting))
    points.sort(key=lambda point: (point.loss, -point.gain))
    best: list[Point] = []
    for point in points:
        if not best or point.gain > best[-1].gain:
            best.append(point)
    return best
