"""What the models may say at the points that Eq. 1 chose, and what they say of a project and size. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.prediction.untouched import NEVER, SPREAD, less

NO_PDM = "0"
"""The point where no curve of latency sensitivity is for a VM's PDM: the untouched memory alone."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """What a project's instances of one size would suffer: a high quantile, in percent, of so many."""

    percent: float
    instances: int


@dataclass(frozen=True, slots=True)
class Untouched:
    """The share that is predicted to stay untouched, and of how many records; `least` of them, None without any.

    `spread`: of the records' shares, which makes a margin larger or smaller.
    """

    share: float
    records: int
    least: float | None
    spread: float = SPREAD

    def less(self, margin: float, memory_mib: int) -> float:
        """Return what a margin leaves of the share."""
        return less(self.share, margin, memory_mib, self.spread)

    def describe(self, margin: float, memory_mib: int) -> str:
        """Return in words what is predicted, and from what."""
        off = self.share - self.less(margin, memory_mib)
        text = f"{100 * self.share:.0f} % untouched predicted, {100 * off:.0f} % taken off"
        if margin > 1:
            text = "no share keeps to the budget"
        if self.least is None:
            return f"{text}, by size alone: its project has no history"
        return (
            f"{text}, by {self.records} instances of its project in four weeks "
            f"(least untouched {100 * self.least:.0f} %)"
        )


@dataclass(frozen=True, slots=True)
class Risk:
    """The point of a PDM. `threshold`: the largest slowdown that is insensitive, None: nothing is."""

    pdm: float
    threshold: float | None
    known: float
    cold: float
    false_positives: float
    over_predictions: float

    @classmethod
    def of(cls, pdm: str, point: Mapping[str, Any]) -> "Risk":
        """Return the risk of a point, as pondstack.prediction.balance makes JSON of it."""
        insensitive, untouched = point["insensitive"], point["untouched"]
        return cls(
            float(pdm),
            insensitive.get("threshold"),
            untouched.get("known", NEVER),
            untouched.get("cold", NEVER),
            insensitive["loss"],
            untouched["loss"],
        )

    def is_insensitive(self, history: Slowdown) -> bool:
        """Return whether VMs with this history may have all but a minimum of their memory from the pool."""
        return self.threshold is not None and history.percent <= self.threshold

    def margin(self, found: Untouched) -> float:
        """Return what is taken off a prediction."""
        return self.known if found.records else self.cold


class Risks:
    """The points of all PDMs."""

    def __init__(self, points: Mapping[str, Any]) -> None:
        """`points`: by PDM in percent, with one for NO_PDM."""
        self._risks = sorted((Risk.of(pdm, point) for pdm, point in points.items()), key=lambda risk: risk.pdm)

    def of(self, pdm_percent: float) -> Risk:
        """Return the point of the greatest PDM that is not above a flavor's: a smaller one promises more."""
        return max((risk for risk in self._risks if risk.pdm <= pdm_percent), key=lambda risk: risk.pdm)
