"""What samples say of spilling, as people read it: slowdown, and accesses to the pool (Pond Figs. 15, 16). Pure."""

import statistics
from collections import Counter
from collections.abc import Sequence

from pondstack.domain.telemetry import Source
from pondstack.prediction.samples import Sample


def lines(found: Sequence[Sample]) -> list[str]:
    """Return a table by spill, and what was not measured."""
    return [source(found), *sweep(found), *missing(found)]


def source(found: Sequence[Sample]) -> str:
    """Return whether they were measured, loudly where not."""
    workloads = len({item.workload for item in found})
    counts = Counter(item.source for item in found)
    if counts[Source.SYNTHETIC]:
        return f"SYNTHETIC: {counts[Source.SYNTHETIC]} of {len(found)} runs of {workloads} workloads are made up"
    machines = ", ".join(sorted({item.cpu for item in found}))
    return f"measured: {len(found)} runs of {workloads} workloads on {machines}"


def sweep(found: Sequence[Sample]) -> list[str]:
    """Return slowdown (median, 95th percentile, worst) and the pool's share of accesses at each spill."""
    told = ["spill %   slowdown %: median     p95   worst   accesses to the pool %: median     p95"]
    for spill in sorted({step.spill_percent for item in found for step in item.sweep}):
        steps = [step for item in found for step in item.sweep if step.spill_percent == spill]
        slow = sorted(step.slowdown_percent for step in steps)
        shares = sorted(step.pool_access_percent for step in steps if step.pool_access_percent is not None)
        seen = f"{statistics.median(shares):30.2f} {_p95(shares):7.2f}" if shares else f"{'not measured':>30}"
        told.append(f"{spill:7.0f} {statistics.median(slow):20.1f} {_p95(slow):7.1f} {slow[-1]:7.1f} {seen}")
    return told


def missing(found: Sequence[Sample]) -> list[str]:
    """Return what was not measured, by reason."""
    reasons: dict[str, set[str]] = {}
    for item in found:
        for name, reason in item.missing.items():
            reasons.setdefault(reason, set()).add(name)
    return [f"not measured: {', '.join(sorted(names))}: {reason}" for reason, names in sorted(reasons.items())]


def _p95(ordered: Sequence[float]) -> float:
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
