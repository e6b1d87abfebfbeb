"""The control group: a share of `auto` VMs that stay all local, to see what pool memory costs the others. Pure.

Who is in it is a hash of the instance's UUID with a seed: every scheduler says the same, and nobody chooses.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pondstack.domain.sizing import Features, Split, SplitPredictor

CONTROL = "control"
"""Source of the split of a VM of the control group."""
_BITS = 64


@dataclass(frozen=True, slots=True)
class Control:
    """Which share of VMs is in the group, in percent, by which seed."""

    share_percent: float = 0.0
    seed: str = ""

    def has(self, instance_uuid: str) -> bool:
        """Return whether an instance is in the group."""
        digest = hashlib.sha256(f"{self.seed}:{instance_uuid.lower()}".encode()).digest()
        return int.from_bytes(digest[: _BITS // 8], "big") * 100 < self.share_percent * 2**_BITS

    def to_wire(self) -> dict[str, Any]:
        """Return it as JSON types; {} for no group."""
        return {"share_percent": self.share_percent, "seed": self.seed} if self.share_percent > 0 else {}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any] | None) -> "Control":
        """Build it; a sender of the former release sends nothing."""
        data = data or {}
        return cls(float(data.get("share_percent", 0.0)), str(data.get("seed", "")))


class WithControl:
    """Leaves the VMs of the control group all local; `predictor` decides of the others."""

    def __init__(self, control: Control, predictor: SplitPredictor) -> None:
        self._control = control
        self._predictor = predictor

    def predict(self, features: Features, slice_mib: int) -> Split:
        """Return the split."""
        if not self._control.has(features.instance_uuid):
            return self._predictor.predict(features, slice_mib)
        reason = f"control group: {self._control.share_percent:g} % of auto instances stay all local, by their UUID"
        return Split(features.memory_mib, 0, source=CONTROL, confidence=1.0, reason=reason)
