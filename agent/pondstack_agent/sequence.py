"""Numbers that grow over restarts, for a disk write per thousand of them."""

import threading

from pondstack_agent.records import Records

_KEY = "sequence"
_BLOCK = 1000


class Sequence:
    """Each `next` is higher than all before it, in this life of the agent and in former ones."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._reserved = int((records.get(_KEY) or {}).get("reserved", 0))
        self._last = self._reserved

    def next(self) -> int:
        """Return the next number."""
        with self._lock:
            self._last += 1
            if self._last > self._reserved:
                self._reserved = self._last + _BLOCK
                self._records.put(_KEY, {"reserved": self._reserved})
            return self._last
