"""Samples to learn latency sensitivity from: what a workload's counters say in local memory, and its slowdowns.

JSON lines, one run of a workload each, as pondstack-sample writes them. Every line says whether it was measured.
"""

import hashlib
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.domain.telemetry import Source
from pondstack.prediction.counters import COUNTERS, row_of, unknown

WHOLE = 100.0
"""Spill in percent at which all memory is in the pool: the slowdown there is the label."""
KNOWN = 0.9
"""Share of the workloads that have to know a counter before it is a feature."""


@dataclass(frozen=True, slots=True)
class Step:
    """One point of a sweep (Pond 6.3): memory in the pool, what it costs, and how much of the accesses go there."""

    spill_percent: float
    slowdown_percent: float
    pool_access_percent: float | None = None
    """None: not measured."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. `counters`: of the run in local memory; one that is not there is in `missing`, with the reason."""

    workload: str
    kernel: str
    run: int
    source: Source
    cpu: str
    taken_at: str
    counters: Mapping[str, float]
    sweep: Sequence[Step]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def slowdown_percent(self) -> float:
        """Return the slowdown with all memory in the pool."""
        return next(step.slowdown_percent for step in self.sweep if step.spill_percent == WHOLE)


@dataclass(frozen=True, slots=True)
class Workload:
    """All runs of one workload: the medians. `row` is of COUNTERS."""

    name: str
    kernel: str
    row: Sequence[float]
    slowdown: float


@dataclass(frozen=True, slots=True)
class SampleSet:
    """Workloads that know all of `features`, sorted by name, and what is to be said of where they come from."""

    workloads: Sequence[Workload]
    features: Sequence[str]
    sources: dict[str, int]
    """Runs by source."""
    left_out: int
    """Workloads that lack one of the features."""
    sha256: str
    window: tuple[str, str]
    cpus: Sequence[str]
    """Models of processors that they were counted on: of others a counter may mean something else."""


def dump(sample: Sample) -> str:
    """Return a sample as such a line, without its end."""
    return json.dumps(asdict(sample), sort_keys=True)


def parse(data: Mapping[str, Any]) -> Sample:
    """Build a sample; unknown keys are dropped. Raises KeyError, TypeError, ValueError."""
    sweep = [
        Step(float(item["spill_percent"]), float(item["slowdown_percent"]), _maybe(item.get("pool_access_percent")))
        for item in data["sweep"]
    ]
    if not any(step.spill_percent == WHOLE for step in sweep):
        raise ValueError("sweep has no slowdown at a spill_percent of 100, which is the label")
    datetime.fromisoformat(data["taken_at"])
    counters = {str(name): float(value) for name, value in data["counters"].items() if value is not None}
    return Sample(
        str(data["workload"]),
        str(data.get("kernel") or data["workload"]),
        int(data.get("run", 0)),
        Source(data["source"]),
        str(data.get("cpu", "")),
        str(data["taken_at"]),
        counters,
        sweep,
        dict(data.get("missing") or {}),
    )


def read(path: Path) -> Iterator[Sample]:
    """Return the samples of a file; raises BadRequest (which line is wrong, and how), OSError."""
    with path.open() as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield parse(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise BadRequest(f"{path}, line {number}: {said}; wanted a line of pondstack-sample") from error


def usable(samples: Iterable[Sample], *, synthetic: bool) -> list[Sample]:
    """Return those that were measured; made-up ones only where wanted. Raises BadRequest where none is left."""
    found = list(samples)
    kept = [item for item in found if synthetic or item.source != Source.SYNTHETIC]
    if found and not kept:
        raise BadRequest(
            f"all {len(found)} samples are synthetic: they train nothing, unless --synthetic asks for them"
        )
    return kept


def gather(samples: Iterable[Sample]) -> SampleSet:
    """Return workloads to learn from. Raises BadRequest where nothing was counted."""
    found = sorted(samples, key=lambda item: (item.workload, item.run, item.taken_at))
    digest = hashlib.sha256()
    for item in found:
        digest.update(dump(item).encode() + b"\n")
    by_name: dict[str, list[Sample]] = defaultdict(list)
    for item in found:
        by_name[item.workload].append(item)
    workloads = [_merged(runs) for runs in by_name.values()]
    features = _features(workloads)
    if not features:
        reasons = sorted({reason for item in found for reason in item.missing.values()})
        told = f" ({'; '.join(reasons)})" if reasons else ""
        raise BadRequest(f"no counter is known of the {len(workloads)} workloads{told}: there is nothing to learn from")
    whole = [item for item in workloads if not unknown(features, item.row)]
    times = sorted(item.taken_at for item in found)
    return SampleSet(
        whole,
        features,
        dict(Counter(str(item.source) for item in found)),
        len(workloads) - len(whole),
        digest.hexdigest(),
        (times[0], times[-1]),
        sorted({item.cpu for item in found}),
    )


def _merged(runs: Sequence[Sample]) -> Workload:
    names = {name for item in runs for name in item.counters}
    values = {name: statistics.median(item.counters[name] for item in runs if name in item.counters) for name in names}
    slowdown = statistics.median(item.slowdown_percent for item in runs)
    return Workload(runs[0].workload, runs[0].kernel, row_of(values), slowdown)


def _features(workloads: Sequence[Workload]) -> list[str]:
    lacks = Counter(name for item in workloads for name in unknown(COUNTERS, item.row))
    return [name for name in COUNTERS if workloads and lacks[name] <= (1 - KNOWN) * len(workloads)]


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)
