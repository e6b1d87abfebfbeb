"""What readers get of the QoS monitor: plain immutable values. Times in seconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class QosDecision:
    """A decision of the monitor; `verdict`, `action`, `mode` by pondstack.domain.qos.

    `expected_percent`: slowdown of the VM as it is, None: no model knows. `untouched_mib`: of all its memory then.
    `id` 0: it is not stored yet.
    """

    consumer_uuid: str
    allocation_uuid: str
    project_id: str
    host: str
    verdict: str
    action: str
    mode: str
    reason: str
    expected_percent: float | None
    untouched_mib: float | None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    decided_at: float = 0.0
    id: int = 0


@dataclass(frozen=True, slots=True)
class Reprediction:
    """A long-lived VM that was predicted again: `pool_mib` it has, `wanted_mib` it could have, whole slices."""

    consumer_uuid: str
    project_id: str
    memory_mib: int
    pool_mib: int
    wanted_mib: int
    untouched_mib: float
    age_seconds: int
    source: str
    predicted_at: float = 0.0

    @property
    def reclaimable_mib(self) -> int:
        """Return how much more of its memory could come from the pool."""
        return max(0, self.wanted_mib - self.pool_mib)


@dataclass(frozen=True, slots=True)
class LongLived:
    """A VM that has lived for long: `untouched_mib` of all its memory, the least of the last period of telemetry.

    `split_source`: what decided its split; `source`: of the telemetry.
    """

    consumer_uuid: str
    project_id: str
    flavor_name: str
    memory_mib: int
    pool_mib: int
    split_source: str
    untouched_mib: float
    created_at: float
    sized_at: float
    source: str


@dataclass(frozen=True, slots=True)
class Performance:
    """A tenant's figure of one metric of an instance: the mean of its readings, and the newest one."""

    consumer_uuid: str
    metric: str
    higher_is_better: bool
    readings: int
    mean: float
    newest: float
    updated_at: float
    split_source: str = ""
