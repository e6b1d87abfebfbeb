"""The highest epoch that this host has seen; an older controller is refused, after a restart too."""

import threading

from oslo_log import log

from pondstack.domain.errors import StaleEpoch
from pondstack_agent.records import Records

LOG = log.getLogger(__name__)

_KEY = "epoch"


class EpochGuard:
    """Persisted high-water mark of the controller's epoch."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._seen = int((records.get(_KEY) or {}).get("seen", 0))

    @property
    def seen(self) -> int:
        """The highest epoch so far."""
        return self._seen

    def check(self, epoch: int) -> None:
        """Let an epoch in and remember it; raises StaleEpoch when a higher one was seen."""
        with self._lock:
            if epoch < self._seen:
                raise StaleEpoch(
                    f"this host has seen epoch {self._seen} and refuses epoch {epoch}; another controller leads now"
                )
            if epoch > self._seen:
                # On disk before anybody acts on it.
                self._records.put(_KEY, {"seen": epoch})
                LOG.info("Controller's epoch is %d", epoch)
                self._seen = epoch
