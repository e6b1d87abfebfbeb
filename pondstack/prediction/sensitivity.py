"""Which projects' instances of a size are insensitive to latency, by the counters of those before (Pond 4.4). Pure.

The rule is careful: at least five instances of the project and size in four weeks, and at least half of them, must have
all counters that the model needs; what counts is the 95th percentile of their predicted slowdowns, which is the worst
of fewer than 20. One whose counters are not known says nothing, and where too few say something the project has no
history.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pondstack.domain.history import GuestCounters, percentile
from pondstack.domain.telemetry import Source
from pondstack.prediction.counters import row_of, unknown
from pondstack.prediction.latency import LatencyModel
from pondstack.prediction.untouched_table import size_key

LEAST_INSTANCES = 5
LEAST_SHARE = 0.5
PERCENTILE = 95.0
DIGITS = 2


def usable(guests: Iterable[GuestCounters], manifest: Mapping[str, Any]) -> list[GuestCounters]:
    """Return those whose counters were measured; made-up ones only for a model that learnt from made-up samples."""
    synthetic = is_synthetic(manifest)
    return [guest for guest in guests if synthetic or guest.source != Source.SYNTHETIC]


def is_synthetic(manifest: Mapping[str, Any]) -> bool:
    """Return whether a model learnt from made-up labels."""
    counted = manifest.get("data", {}).get("lifetimes", {})
    return manifest.get("source") == Source.SYNTHETIC or bool(counted.get(Source.SYNTHETIC))


def slowdowns(model: LatencyModel, guests: Sequence[GuestCounters]) -> dict[str, float]:
    """Return the predicted slowdown in percent of each instance whose counters are known, by UUID."""
    rows = [(guest.instance_uuid, row_of(guest.counters)) for guest in guests]
    known = [(uuid, row) for uuid, row in rows if not unknown(model.features, row)]
    found = model.slowdowns([row for _, row in known])
    return {uuid: value for (uuid, _), value in zip(known, found, strict=True) if math.isfinite(value)}


def table(version: str, guests: Iterable[GuestCounters], slowdown: dict[str, float]) -> dict[str, Any]:
    """Return slowdown and instances for each project and size that has a history, as pondstack.prediction.flow reads.

    `guests`: those of the last four weeks; `slowdown`: as slowdowns() gives it.
    """
    groups: dict[tuple[str, str], list[GuestCounters]] = defaultdict(list)
    for guest in guests:
        groups[guest.project_id, size_key(guest.memory_mib, guest.vcpus)].append(guest)
    projects: dict[str, dict[str, list[Any]]] = {}
    for (project, size), members in groups.items():
        known = [slowdown[guest.instance_uuid] for guest in members if guest.instance_uuid in slowdown]
        worst = percentile(known, PERCENTILE)
        if worst is None or len(known) < LEAST_INSTANCES or len(known) < LEAST_SHARE * len(members):
            continue
        projects.setdefault(project, {})[size] = [_ceil(worst), len(known)]
    return {"version": version, "projects": projects}


def _ceil(percent: float) -> float:
    """Return a slowdown with few digits, never less than it is."""
    return math.ceil(percent * 10**DIGITS) / 10**DIGITS
