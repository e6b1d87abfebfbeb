"""What models that decide splits may still risk; it travels to nova-scheduler. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Allowance:
    """`left` VMs may fail, and one that a version decides counts as its `costs` (pondstack.prediction.budget)."""

    left: float
    costs: Mapping[str, float]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Build it from to_wire()."""
        return cls(float(data["left"]), {str(name): float(cost) for name, cost in data["costs"].items()})

    def to_wire(self) -> dict[str, Any]:
        """Return JSON types."""
        return {"left": self.left, "costs": dict(self.costs)}

    def cost(self, version: str) -> float:
        """Return what one VM counts as: in full, by a version that nobody knows; nothing, by no model."""
        return self.costs.get(version, 1.0) if version else 0.0

    def allows(self, version: str, instances: int = 1) -> bool:
        """Return whether so many more VMs may get pool memory by a version; "" is no model."""
        return self.left > 0 and self.cost(version) * instances <= self.left

    def less(self, risked: float) -> "Allowance":
        """Return what is left after more was risked."""
        return Allowance(self.left - risked, self.costs)
