"""Splits from a table of decisions that were computed ahead: no model, no numpy, nothing to wait for."""

from collections.abc import Mapping
from typing import Any

from pondstack.domain.sizing import Features, Split, SplitPredictor

COLD = ""
"""The project of all that have no history."""
SOURCE = "untouched"


def size_key(memory_mib: int, vcpus: int) -> str:
    """Return what a table knows a size by."""
    return f"{memory_mib}/{vcpus}"


class UntouchedTable:
    """Gives what the model says will stay untouched (Pond 4.4); where it says nothing, `otherwise` decides."""

    def __init__(self, table: Mapping[str, Any], otherwise: SplitPredictor) -> None:
        self._version: str = table["version"]
        self._projects: Mapping[str, Mapping[str, tuple[int, str]]] = table["projects"]
        self._confidence = 1.0 - table["over_prediction_percent"] / 100
        self._otherwise = otherwise

    def predict(self, features: Features, slice_mib: int) -> Split:
        """Return the split: whole slices, no more than the flavor's cap."""
        size = size_key(features.memory_mib, features.vcpus)
        own = self._projects.get(features.project_id, {})
        found = own.get(size) or self._projects.get(COLD, {}).get(size)
        if found is None:
            return self._otherwise.predict(features, slice_mib)
        untouched, reason = found
        most = min(untouched, features.memory_mib * features.specs.max_pool_percent // 100, features.memory_mib - 1)
        pool_mib = most // slice_mib * slice_mib
        return Split(
            features.memory_mib - pool_mib,
            pool_mib,
            source=SOURCE,
            confidence=self._confidence,
            reason=f"model {self._version}: {reason}",
        )
