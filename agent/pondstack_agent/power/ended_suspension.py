"""The order to sleep that this host was told has ended: what comes of it later is refused, after a restart too.

An order may lie in the queue of a host that was down, until a controller has found that awake, and has given its memory
back to Nova: a host that fell asleep by it then would be one that nobody wakes.
"""

from pondstack.domain.errors import Conflict
from pondstack_agent.records import Records

KEY = "suspension"


class EndedSuspension:
    """Of one host, on disk. Not thread-safe."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def end(self, operation_id: str) -> None:
        """Keep that an order has ended; the one before is forgotten."""
        self._records.put(KEY, {"ended": operation_id})

    def check(self, operation_id: str) -> None:
        """Raise Conflict for the order that has ended."""
        if (self._records.get(KEY) or {}).get("ended") == operation_id:
            raise Conflict("the sleep that this order is of has ended: it came too late")
