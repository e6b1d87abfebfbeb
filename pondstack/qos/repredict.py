"""Re-prediction during life (LAVA, MLSys'25): what a long-lived VM could have from the pool, by its own past. Pure.

At its start only its project and size are known; later it is known itself. What it leaves untouched now is what it will
leave, less a margin for the life that is still ahead: in full at the age from which VMs are predicted again, and then
smaller with the root of the age, or in proportion to the life that is expected to remain, whichever is less; never less
than a quarter. The remaining life is conditional on the age (pondstack.prediction.lifetime).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pondstack.ledger.qos_records import LongLived, Reprediction
from pondstack.prediction.control import CONTROL

LEAST_MARGIN = 0.25
KEPT = frozenset({"fixed", "local", "present", "pinned", "unfit", "corrected", CONTROL})
"""Sources of splits that are nobody's prediction, or that must stay as they are."""

RemainingSeconds = Callable[[LongLived], float | None]
"""How long a VM will live on in the median; None: longer than what is known, or too little is known."""


@dataclass(frozen=True, slots=True)
class Rule:
    """From which age VMs are predicted again, and what is taken off then, in percent of their memory."""

    after_seconds: float
    margin_percent: float
    slice_mib: int

    def margin(self, age_seconds: float, remaining_seconds: float | None) -> float:
        """Return the share (0 to 1) of the memory that is taken off."""
        factor = math.sqrt(self.after_seconds / max(age_seconds, self.after_seconds))
        if remaining_seconds is not None:
            factor = min(factor, remaining_seconds / self.after_seconds)
        return self.margin_percent / 100 * max(LEAST_MARGIN, factor)

    def wanted_mib(self, item: LongLived, age_seconds: float, remaining_seconds: float | None) -> int:
        """Return how much of its memory could come from the pool: whole slices, and some memory stays local."""
        safe = item.untouched_mib - self.margin(age_seconds, remaining_seconds) * item.memory_mib
        return int(max(0.0, min(safe, item.memory_mib - self.slice_mib)) // self.slice_mib) * self.slice_mib


def predict_again(
    items: Iterable[LongLived], rule: Rule, remaining: RemainingSeconds, now: float
) -> list[Reprediction]:
    """Return what is predicted of those that are old enough; `now` in seconds since the epoch."""
    found = []
    for item in items:
        age = now - item.sized_at
        if item.split_source in KEPT or age < rule.after_seconds:
            continue
        wanted = rule.wanted_mib(item, age, remaining(item))
        found.append(
            Reprediction(
                item.consumer_uuid,
                item.project_id,
                item.memory_mib,
                item.pool_mib,
                wanted,
                item.untouched_mib,
                int(age),
                item.source,
            )
        )
    return found
