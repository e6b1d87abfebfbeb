"""Whether a VM uses pool memory that it was not to use, and suffers: the verdict of one VM (Pond 4.2, 4.4). Pure.

Over-predicted is a VM whose zNUMA node is touched beyond a limit: the kernel of a guest itself writes some of it, so
that the limit is a share, and not less than some MiB. Such a VM is mitigated when a model expects it to be slowed down.
Memstrata (OSDI'24, section 5) finds its outliers in the same way: by a light model of a few counters.
"""

from dataclasses import dataclass
from typing import Any

from pondstack.domain.pool_guest import PoolGuest
from pondstack.domain.qos import Unknown, Verdict
from pondstack.qos.sensitivity import Sensitivity, Slowdown

FIXED = "fixed"
"""Source of a split that a flavor orders: who asked for pool memory uses it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows. `touched_percent` of the pool memory may be touched, and `touched_mib` in any case."""

    touched_percent: float
    touched_mib: int
    pdm_percent: float
    unknown: Unknown

    def of_pool(self, pool_mib: int) -> float:
        """Return how much of so much pool memory a VM may touch, in MiB."""
        return max(float(self.touched_mib), pool_mib * self.touched_percent / 100)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on. `expected_percent`: slowdown, for the share of touched memory in the pool.

    None: no model knows. The models tell of a guest that has all of its memory in the pool; that a part costs its part
    is an assumption, and only the order of mitigations rests on it.
    """

    guest: PoolGuest
    verdict: Verdict
    limit_mib: float
    pdm_percent: float
    slowdown: Slowdown | None = None

    @property
    def expected_percent(self) -> float | None:
        """Return the slowdown that is expected of it as it is."""
        return None if self.slowdown is None else self.slowdown.percent * self.guest.pool_share

    def evidence(self) -> dict[str, Any]:
        """Return what the verdict rests on, as JSON types; memory in MiB, slowdown in percent."""
        guest, slowdown = self.guest, self.slowdown
        return {
            "memory_mib": guest.memory_mib,
            "pool_mib": guest.pool_mib,
            "touched_mib": guest.touched_mib,
            "limit_mib": self.limit_mib,
            "memory_untouched_mib": guest.memory_untouched_mib,
            "pdm_percent": self.pdm_percent,
            "slowdown_percent": None if slowdown is None else slowdown.percent,
            "threshold_percent": None if slowdown is None else slowdown.threshold,
            "expected_percent": self.expected_percent,
            "sensitivity_model": "" if slowdown is None else slowdown.version,
            "split_source": guest.split_source,
            "split_model": guest.model_version,
            "source": str(guest.source),
        }


def judge(guest: PoolGuest, sensitivity: Sensitivity, limits: Limits) -> Judgement:
    """Return the verdict of a guest."""
    limit = limits.of_pool(guest.pool_mib)
    pdm = limits.pdm_percent if guest.pdm_percent is None else guest.pdm_percent
    touched = guest.touched_mib
    if touched is None or touched <= limit:
        return Judgement(guest, Verdict.UNOBSERVED if touched is None else Verdict.FITS, limit, pdm)
    slowdown = sensitivity.of(guest.consumer_uuid, pdm)
    if slowdown is None:
        return Judgement(guest, Verdict.UNKNOWN, limit, pdm)
    return Judgement(guest, Verdict.SENSITIVE if slowdown.sensitive else Verdict.INSENSITIVE, limit, pdm, slowdown)


def to_mitigate(item: Judgement, limits: Limits) -> bool:
    """Return whether a verdict asks for a mitigation."""
    if item.guest.split_source == FIXED:
        return False
    return item.verdict is Verdict.SENSITIVE or (item.verdict is Verdict.UNKNOWN and limits.unknown is Unknown.MITIGATE)
