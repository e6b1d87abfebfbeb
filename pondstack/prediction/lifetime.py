"""How long an instance will still live, given its age: empirical survival (Kaplan and Meier), asked again as it ages.

Instances that still live are censored; those that were there before the window begins enter late, at the age that they
had then, so that long lives are not counted twice. LAVA (MLSys'25) repredicts lifetimes in the same way. Pure.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pondstack.domain.history import Lifetime

LEAST_AT_RISK = 20
"""With fewer instances that have lived as long, the next larger group is asked."""


@dataclass(frozen=True, slots=True)
class Life:
    """One instance in a window, by its age in seconds: seen from `entered` to `left`; `ended` then, or still there."""

    entered: float
    left: float
    ended: bool


class Survival:
    """How lives went on after each age. Made once of many lives, asked for many ages."""

    def __init__(self, lives: Iterable[Life]) -> None:
        known = [life for life in lives if life.left > life.entered or life.left == life.entered == 0]
        self._entered = sorted(life.entered for life in known)
        self._left = sorted(life.left for life in known)
        ends = Counter(life.left for life in known if life.ended)
        self._ages = sorted(ends)
        self._surviving = [1.0 - ends[age] / self._seen_at(age) for age in self._ages]

    def _seen_at(self, age: float) -> int:
        """Return how many were seen at an age; who comes in at it comes after those who leave."""
        entered = bisect_left(self._entered, age) if age > 0 else bisect_right(self._entered, age)
        return entered - bisect_left(self._left, age)

    def at_risk(self, age: float) -> int:
        """Return how many instances were seen to live for longer than an age, in seconds."""
        return bisect_right(self._entered, age) - bisect_right(self._left, age)

    def remaining(self, age: float, percent: float) -> float | None:
        """Return the seconds within which `percent` of those who are `age` seconds old will have ended.

        None: so many have not ended within what was seen. Lives before this age do not count: of few that were seen
        young, all may have ended.
        """
        target, share = 1.0 - percent / 100.0 + 1e-12, 1.0
        for place in range(bisect_right(self._ages, age), len(self._ages)):
            share *= self._surviving[place]
            if share <= target:
                return self._ages[place] - age
        return None


@dataclass(frozen=True, slots=True)
class Remaining:
    """How long an instance will live on, in seconds from now; None: longer than what is known.

    `group`: whose lives it was made of: flavor (of the project), project or cloud; `at_risk`: how many of them lived
    as long.
    """

    median_seconds: float | None
    p90_seconds: float | None
    group: str
    at_risk: int


class Remainders:
    """Remaining lifetimes of many instances by the same lives; the curve of each group is made once.

    As remaining_lifetime(), but that an instance's own life so far is among the others.
    """

    def __init__(self, others: Iterable[Lifetime], since: datetime, now: datetime) -> None:
        self._lives: dict[tuple[str, ...], list[Life]] = defaultdict(list)
        for item in others:
            life = life_of(item, since, now)
            for group in _groups(item.project_id, item.flavor_name):
                self._lives[group].append(life)
        self._curves: dict[tuple[str, ...], Survival] = {}

    def median_seconds(self, project_id: str, flavor_name: str, age_seconds: float) -> float | None:
        """Return the median; None: longer than what is known, or too few lived as long."""
        for group in _groups(project_id, flavor_name):
            survival = self._curve(group)
            if survival.at_risk(age_seconds) >= LEAST_AT_RISK:
                return survival.remaining(age_seconds, 50.0)
        return None

    def _curve(self, group: tuple[str, ...]) -> Survival:
        if group not in self._curves:
            self._curves[group] = Survival(self._lives.get(group, ()))
        return self._curves[group]


def _groups(project_id: str, flavor_name: str) -> tuple[tuple[str, ...], ...]:
    """Return an instance's groups, the closest first: its flavor in its project, its project, the cloud."""
    return (project_id, flavor_name), (project_id,), ()


def life_of(lifetime: Lifetime, since: datetime, until: datetime) -> Life:
    """Return what of a life is seen in the window; `since` is when all instances that were there began to be known."""
    created = lifetime.created_at.timestamp()
    ended = lifetime.deleted_at is not None and lifetime.deleted_at <= until
    end = min(lifetime.deleted_at or until, until)
    return Life(max(0.0, since.timestamp() - created), max(0.0, end.timestamp() - created), ended)


def remaining_lifetime(one: Lifetime, others: Sequence[Lifetime], since: datetime, now: datetime) -> Remaining | None:
    """Return how long an instance will live on by what others did in a window; None when too few lived as long.

    By those of its project and flavor, else of its project, else by all.
    """
    age = max(0.0, now.timestamp() - one.created_at.timestamp())
    groups: dict[str, Callable[[Lifetime], bool]] = {
        "flavor": lambda item: (item.project_id, item.flavor_name) == (one.project_id, one.flavor_name),
        "project": lambda item: item.project_id == one.project_id,
        "cloud": lambda _item: True,
    }
    lives = [item for item in others if item.instance_uuid != one.instance_uuid]
    for name, chosen in groups.items():
        survival = Survival(life_of(item, since, now) for item in lives if chosen(item))
        at_risk = survival.at_risk(age)
        if at_risk >= LEAST_AT_RISK:
            return Remaining(survival.remaining(age, 50.0), survival.remaining(age, 90.0), name, at_risk)
    return None
