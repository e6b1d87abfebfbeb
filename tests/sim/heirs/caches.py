"""CPU caches of hosts that nothing keeps coherent over a device: what guests wrote may be there and in no memory."""

from typing import TYPE_CHECKING, Any

from pondstack.domain.backing import DEVDAX
from pondstack.domain.errors import NotFound
from tests.fixtures.memory_host import MemoryRecords
from tests.sim.invariants import Violation
from tests.sim.slow_host import SlowHostPool

if TYPE_CHECKING:
    from tests.sim.host import SimHost

RESTARTED = "restarted_with"


class Caches:
    """Of all hosts, by allocation. `cut_short`: what a guest wrote on a host that lost power since."""

    def __init__(self) -> None:
        self._dirty: set[tuple[str, str]] = set()
        self._written: set[tuple[str, str]] = set()
        self._lost: set[str] = set()
        self.cut_short: set[str] = set()

    def wrote(self, host: str, allocation_uuid: str) -> None:
        """A guest began anew on a host, and wrote."""
        self._dirty.add((host, allocation_uuid))
        self._lost.discard(allocation_uuid)

    def write_back(self, host: str, allocation_uuid: str) -> None:
        """All of it is in memory."""
        if (host, allocation_uuid) in self._dirty:
            self._dirty.remove((host, allocation_uuid))
            self._written.add((host, allocation_uuid))

    def cut(self, host: str) -> None:
        """A host lost power."""
        lost = {item for item in self._dirty if item[0] == host}
        self._dirty -= lost
        self._lost |= {uuid for _, uuid in lost}
        self.cut_short |= {uuid for name, uuid in lost | self._written if name == host}

    def check_whole(self, allocation_uuid: str) -> None:
        """Raise Violation unless all that a guest wrote into an allocation is in memory."""
        where = [host for host, uuid in self._dirty if uuid == allocation_uuid]
        if where:
            raise Violation("stale_memory", f"a guest runs on without what {where[0]} has in its CPU caches")
        if allocation_uuid in self._lost:
            raise Violation("stale_memory", "a guest runs on without what CPU caches had when its host lost power")


class CachingHostPool(SlowHostPool):
    """The pools of a host with CPU caches of its own, as those of [cxl] backing = devdax."""

    backing = DEVDAX

    def __init__(self, host: "SimHost", records: MemoryRecords) -> None:
        super().__init__(host, records)
        for uuid, record in self._records.all().items():
            if record.get("boot") != host.power_cuts:
                heir = self._heir_tag(uuid)
                kept = {RESTARTED: heir} if heir else {}
                self._records.put(uuid, {**record, "boot": host.power_cuts, **kept})

    def attach(self, grant: Any) -> Any:
        """Note the boot."""
        found = super().attach(grant)
        record = self._records.get(grant.allocation_uuid)
        assert record is not None
        if "boot" not in record:
            self._records.put(grant.allocation_uuid, {**record, "boot": self._of.power_cuts})
        return found

    def detach(self, allocation_uuid: str) -> bool:
        """Write caches back once nobody maps it."""
        had = super().detach(allocation_uuid)
        if had:
            self._of.rack.caches.write_back(self._of.name, allocation_uuid)
        return had

    def lost_caches(self, allocation_uuid: str) -> bool:
        """Tell whether this host restarted while an allocation was being handed over."""
        heir = (self._records.get(allocation_uuid) or {}).get(RESTARTED, "")
        return bool(heir) and heir == self._heir_tag(allocation_uuid)

    def take_up(self, allocation_uuid: str) -> bool:
        """Return whether the device says that slices are this host's alone."""
        record = self._records.get(allocation_uuid)
        if record is None:
            raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._of.name}")
        table, extents = self._device(record["pool_uuid"]).permissions(), record["extents"]
        mine = [table.get(index) for item in extents for index in range(item["start"], item["start"] + item["count"])]
        return all(entry and (entry.host, entry.tag) == (self._of.name, allocation_uuid) for entry in mine)

    def _heir_tag(self, allocation_uuid: str) -> str:
        record = self._records.get(allocation_uuid)
        table = self._device(record["pool_uuid"]).permissions() if record is not None else {}
        heirs = (entry.heir.tag for entry in table.values() if entry.heir and entry.tag == allocation_uuid)
        return next(heirs, "")
