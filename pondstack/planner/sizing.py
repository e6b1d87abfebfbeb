"""How much of each server's memory a policy puts on the pool: production's functions over a history. Compiled.

The models of policy "pond" are drawn from what the paper reports of them: LI and FP, UM and OP (sections 4.4, 6.4).
"""

from dataclasses import dataclass

import numpy as np

from pondstack.planner.history import Array, History
from pondstack.planner.replay import sizes
from pondstack.planner.settings import Settings

MEASURED_LATENCIES = (182.0, 222.0)
OVER_FACTOR = 0.5
"""An over-prediction is by up to that share of what is really untouched."""


@dataclass(frozen=True)
class Sizes:
    """By server: MiB on the pool, and whether it was taken for insensitive."""

    pool_mib: Array
    labelled: Array


def truly_insensitive_percent(settings: Settings, latency_percent: float) -> float:
    """Return the share of servers within the PDM on pool memory alone, on the line through Pond's two latencies.

    Pond, section 3.3; beyond 182 and 222 % it is an extrapolation.
    """
    near, far = settings.truly_insensitive_percent, settings.truly_insensitive_far_percent
    low, high = MEASURED_LATENCIES
    return float(np.clip(near + (far - near) * (latency_percent - low) / (high - low), 0.0, 100.0))


def sizes_of(policy: str, history: History, settings: Settings, latency_percent: float) -> Sizes:
    """Return what a policy decides for each server; "none": all local."""
    nobody = np.zeros(len(history.start), np.bool_)
    if policy == "none":
        return Sizes(np.zeros(len(history.start), np.int32), nobody)
    if policy == "static":
        return Sizes(sizes.static(history.memory_mib, settings.static_percent, settings.slice_mib), nobody)
    truth = truly_insensitive_percent(settings, latency_percent)
    insensitive = history.insensitivity < truth / 100
    if policy == "oracle":
        labelled, share = insensitive, history.untouched
    else:
        labelled, share = _labelled(history, settings, insensitive, truth), predicted(history, settings)
    mib = sizes.modelled(history.memory_mib, labelled, share, settings.min_local_percent, settings.slice_mib)
    return Sizes(mib, labelled)


def _labelled(history: History, settings: Settings, insensitive: Array, truth: float) -> Array:
    """Return who is taken for insensitive: LI of all, FP of all wrongly; LI falls with the truth (Pond, Fig. 17)."""
    if truth <= 0 or settings.truly_insensitive_percent <= 0:
        return np.zeros(len(insensitive), np.bool_)
    marked = settings.insensitive_percent * truth / settings.truly_insensitive_percent
    wrong = min(settings.false_positive_percent, marked, 100.0 - truth)
    chance = np.where(insensitive, (marked - wrong) / truth, wrong / (100.0 - truth) if truth < 100 else 0.0)
    return (history.has_history < settings.history_percent / 100) & (history.label < chance)


def predicted(history: History, settings: Settings) -> Array:
    """Return the predicted untouched share: UM of all memory on average, and more than the truth for OP of servers."""
    truth = float(np.average(history.untouched, weights=history.memory_mib))
    over = settings.over_prediction_percent / 100
    wanted = settings.untouched_percent / 100 / max(truth, 1e-9)
    mean = float(np.clip((wanted - over * (1 + OVER_FACTOR / 2)) / max(1e-9, 1 - over), 0.0, 1.0))
    low, high = max(0.0, 2 * mean - 1), min(1.0, 2 * mean)
    factor = np.where(history.over < over, 1 + OVER_FACTOR * history.factor, low + (high - low) * history.factor)
    return np.minimum(1.0, factor * history.untouched)
