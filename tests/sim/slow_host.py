"""A host whose kernel needs long to take memory offline, as CXL hosts do: callers go on, and the end is told later."""

from typing import TYPE_CHECKING

from tests.fixtures.memory_host import LEAVING, MemoryHostPool, MemoryRecords

if TYPE_CHECKING:
    from .host import SimHost


class SlowHostPool(MemoryHostPool):
    """The pools of a host of a history. It is slow while its host has `offline_seconds`."""

    def __init__(self, host: "SimHost", records: MemoryRecords) -> None:
        super().__init__(host.memory, records)
        self._of = host

    @property
    def slow_detach(self) -> bool:  # type: ignore[override]
        """Whether a detach takes long now."""
        return self._of.memory.offline_seconds > 0

    def begin_detach(self, allocation_uuid: str) -> bool:
        """Keep guests off an allocation; raises InUse while one maps it."""
        with self._host.lock:
            record = self._records.get(allocation_uuid)
            if record is None:
                self._refuse_stranger(allocation_uuid)
                return False
            self._refuse_mapped(record)
            self._records.put(allocation_uuid, {**record, LEAVING: True})
            return True

    def detach(self, allocation_uuid: str) -> bool:
        """Offline an allocation, without the lock meanwhile; raises InUse while a guest maps it."""
        if self.slow_detach and self.begin_detach(allocation_uuid):
            self._of.rack.scheduler.sleep(self._of.memory.offline_seconds)
        return super().detach(allocation_uuid)
