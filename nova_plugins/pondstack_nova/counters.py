"""What the plugins count, by reason: in the process (tests, debugging) and as prometheus_client counters."""

import threading
from collections import Counter as Tally

from prometheus_client import Counter


class ReasonCounter:
    """A counter with one label, `reason`; thread-safe."""

    def __init__(self, name: str, text: str) -> None:
        self._metric = Counter(name, text, ["reason"])
        self._tally: Tally[str] = Tally()
        self._lock = threading.Lock()

    def add(self, reason: str) -> None:
        """Count one more."""
        with self._lock:
            self._tally[reason] += 1
        self._metric.labels(reason).inc()

    def counts(self) -> dict[str, int]:
        """Return the counts of this process by reason."""
        with self._lock:
            return dict(self._tally)


SPLIT_FALLBACKS = ReasonCounter(
    "pondstack_split_fallbacks_total", "VMs placed all local for want of a split that may be used"
)
STALE_SPLITS = ReasonCounter(
    "pondstack_stale_splits_total", "VMs whose split was decided from a stale view of the rack, by the split's source"
)
HOST_REJECTS = ReasonCounter("pondstack_filter_rejects_total", "Hosts that PondFilter rejected")
