"""What the tables show: penalties over all-local turns of the same round, with their spread. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ENDLESS = "\N{INFINITY}"
"""As in the paper: it did not end within the limit in any round."""

Seconds = float
"""math.inf: not done within the limit of a turn."""


@dataclass(frozen=True)
class Penalty:
    """How much longer the same work took, in percent, by round; math.inf where it did not end."""

    percents: tuple[float, ...]

    @classmethod
    def of(cls, turns: Sequence[Seconds], local: Seconds | Sequence[Seconds]) -> "Penalty":
        """Compare turns with the all-local ones of their rounds; ValueError when there are not as many."""
        bases = [local] * len(turns) if isinstance(local, float) else list(local)
        if not turns or len(turns) != len(bases):
            raise ValueError(f"{len(turns)} turns beside {len(bases)} all-local ones: each round has one of either")
        if any(not 0 < base < math.inf for base in bases):
            raise ValueError("an all-local turn did not end, or took no time: there is nothing to compare with")
        return cls(tuple(100 * (turn / base - 1) for turn, base in zip(turns, bases, strict=True)))

    @property
    def median(self) -> float:
        """The median round; math.inf when most did not end."""
        return statistics.median_high(self.percents)

    def __str__(self) -> str:
        """`median (least - most)`, whole from 100 percent on."""
        if len(set(self.percents)) == 1:
            return _percent(self.median)
        return f"{_percent(self.median)} ({_percent(min(self.percents))} - {_percent(max(self.percents))})"


def _percent(value: float) -> str:
    if math.isinf(value):
        return ENDLESS
    return f"{value:,.0f} %" if abs(value) >= 100 else f"{value:.1f} %"


@dataclass(frozen=True)
class Verdict:
    """Whether one target holds, and by which figures."""

    target: str
    held: bool
    why: str

    def __str__(self) -> str:
        """One line of the report."""
        return f"{self.target}: {'ok' if self.held else 'MISSED'}; {self.why}"


def beats(name: str, ours: Mapping[str, Penalty], theirs: Mapping[str, Penalty], tie_percent: float = 1.0) -> Verdict:
    """Judge whether one way has the smaller median penalty at each place that both were measured at.

    Below `tie_percent` apart, in points of percent, neither beats the other: what is lost in noise is no defeat.
    ValueError when there is no such place.
    """
    places = [place for place in ours if place in theirs]
    if not places:
        raise ValueError(f"{name}: nothing was measured of both")
    lost = [place for place in places if _exceeds(ours[place].median, theirs[place].median, tie_percent)]
    why = f"at {len(places) - len(lost)} of {len(places)} places"
    details = "; ".join(
        f"{place}: {_percent(ours[place].median)} against {_percent(theirs[place].median)}" for place in lost
    )
    return Verdict(name, not lost, f"{why}, not at {details}" if lost else why)


def _exceeds(ours: float, theirs: float, tie_percent: float) -> bool:
    if math.isinf(ours):
        return not math.isinf(theirs)
    return ours > theirs + tie_percent


def fewer(name: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> Verdict:
    """Judge whether one has fewer of something at most places, and less of it all in all (geometric mean of ratios).

    ValueError when there is no place where the other has any.
    """
    ratios = [ours[place] / theirs[place] for place in ours if theirs.get(place, 0) > 0]
    if not ratios or any(ratio <= 0 for ratio in ratios):
        raise ValueError(f"{name}: nothing to compare")
    mean, wins = statistics.geometric_mean(ratios), sum(ratio < 1 for ratio in ratios)
    return Verdict(name, mean < 1, f"{100 * (mean - 1):+.1f} % on average, fewer at {wins} of {len(ratios)} places")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: what is printed is what the documentation shows."""
    lines = [list(head), *(list(row) for row in rows)]
    if any(len(line) != len(head) for line in lines):
        raise ValueError("rows of a table have as many cells as its head")
    widths = [max(3, *(len(line[at]) for line in lines)) for at in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    )
