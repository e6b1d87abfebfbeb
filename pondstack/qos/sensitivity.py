"""What the models of latency sensitivity say of VMs by their own counters. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The slowdown that a model expects with all memory in the pool, in percent, and what it may call insensitive."""

    percent: float
    threshold: float | None
    version: str

    @property
    def sensitive(self) -> bool:
        """Return whether it is more than what the model may call insensitive."""
        return self.threshold is None or self.percent > self.threshold


@dataclass(frozen=True, slots=True)
class SlowdownModel:
    """What one model says of instances: slowdown in percent with all memory in the pool, by UUID.

    `threshold(pdm)`: the largest of its figures that is insensitive at a PDM, None: it tells nobody insensitive.
    """

    version: str
    slowdowns: Mapping[str, float]
    threshold: Callable[[float], float | None]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What all models say; of a VM whose counters the one does not know, another one may."""

    models: tuple[SlowdownModel, ...] = field(default=())

    def of(self, consumer_uuid: str, pdm_percent: float) -> Slowdown | None:
        """Return what the models say of a VM; the worst word counts, None: none knows its counters."""
        found = [
            Slowdown(model.slowdowns[consumer_uuid], model.threshold(pdm_percent), model.version)
            for model in self.models
            if consumer_uuid in model.slowdowns
        ]
        return max(found, key=lambda item: (item.sensitive, item.percent), default=None)
