"""The hard budget: a model that is wrong hurts no more VMs than TP allows (Pond 4.4, Eq. 1). Pure.

Of the VMs that models gave pool memory, some failed: they touch what was to stay untouched, or would be slowed down
beyond their PDM. Some are proven: watched long enough, and well. Of the others nobody knows yet, so each counts as its
model's failures so far, and one more, say: in full, where nothing is proven. Failures and these together stay within
(100 - TP) % of all VMs that models decided, or a fixed number where that is more, so that a model can begin.

So a new model that is wrong each time hurts that many and is stopped; one that is right is given tenfold room each time
that what it decided is proven. What it does not give: a VM that fails after it is proven counts then, and
stops the next ones; several schedulers may each decide for the length of one refresh before they hear of each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pondstack.domain.allowance import Allowance
from pondstack.domain.history import Decided
from pondstack.prediction.flow import INSENSITIVE


@dataclass(frozen=True, slots=True)
class Tally:
    """VMs that one version of a model decided. `decided`: with those that it gave no pool memory."""

    decided: int = 0
    failed: int = 0
    proven: int = 0
    unproven: int = 0

    @property
    def rate(self) -> float:
        """Return the share of the unproven that is feared to fail: as those that are known, and one more."""
        return (self.failed + 1) / (self.failed + self.proven + 1)

    @property
    def feared(self) -> float:
        """Return how many have failed or are feared to."""
        return self.failed + self.rate * self.unproven


@dataclass(frozen=True, slots=True)
class Account:
    """Of all versions, by version, against what is allowed."""

    tallies: Mapping[str, Tally]
    target_percent: float
    trial_instances: int

    @property
    def total(self) -> Tally:
        """Return the sum of all versions."""
        every = self.tallies.values()
        return Tally(
            sum(item.decided for item in every),
            sum(item.failed for item in every),
            sum(item.proven for item in every),
            sum(item.unproven for item in every),
        )

    @property
    def allowed(self) -> float:
        """Return how many VMs may fail."""
        return max(float(self.trial_instances), (100.0 - self.target_percent) / 100 * self.total.decided)

    @property
    def left(self) -> float:
        """Return how many more may fail; 0 or less: the budget is used up."""
        return self.allowed - sum(item.feared for item in self.tallies.values())

    def allowance(self, versions: tuple[str, ...]) -> Allowance:
        """Return what the models that serve may still risk."""
        return Allowance(
            self.left, {version: self.tallies.get(version, Tally()).rate for version in versions if version}
        )

    def describe(self) -> str:
        """Return it in words."""
        total = self.total
        return (
            f"{total.failed} of {total.decided} instances that models decided were mispredicted, {total.unproven} are "
            f"not proven yet; {self.left:.1f} of {self.allowed:.1f} that may fail are left"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as the registry keeps it."""
        return {
            **asdict(self.total),
            "allowed": self.allowed,
            "left": self.left,
            "versions": {version: asdict(item) for version, item in self.tallies.items()},
            "text": self.describe(),
        }


def tallies(decided: Iterable[Decided], slowdowns: Mapping[str, float], proving_seconds: float) -> dict[str, Tally]:
    """Return what came of the instances that models decided, by version.

    `slowdowns`: in percent, as the counters of each instance say by now. Over-predicted is who touched more than its
    local memory; mispredicted as insensitive, who would be slowed down beyond its PDM.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for item in decided:
        counts[item.model_version]["decided"] += 1
        if item.pool_mib:
            counts[item.model_version][_outcome(item, slowdowns, proving_seconds)] += 1
    return {version: Tally(**count) for version, count in counts.items()}


def _outcome(item: Decided, slowdowns: Mapping[str, float], proving_seconds: float) -> str:
    if item.source == INSENSITIVE:
        slowdown = slowdowns.get(item.instance_uuid)
        if slowdown is None:
            return "unproven"
        return "failed" if slowdown > item.pdm_percent else "proven"
    if item.untouched_mib is None:
        return "unproven"
    if item.untouched_mib < item.pool_mib:
        return "failed"
    return "proven" if item.whole_life or item.observed_seconds >= proving_seconds else "unproven"
