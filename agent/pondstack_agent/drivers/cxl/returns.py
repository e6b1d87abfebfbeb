"""How slices are given back: taken offline, zeroed where this host does that, dropped. Repeated after every death.

What has content is on disk as dirty (allocations.py) from before the kernel could use it until zeros were verified over
every byte. Whether the kernel still has the slice, and with which driver, does not matter.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log

from pondstack.domain.backing import NODE
from pondstack.domain.errors import DeviceFailed, HostUnusable
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.units import MIB
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl import region
from pondstack_agent.drivers.cxl.allocations import Allocations
from pondstack_agent.drivers.cxl.dax import DEVDAX, KMEM, DaxDevice, Slices, Step
from pondstack_agent.drivers.cxl.driver_lock import DriverLock
from pondstack_agent.drivers.cxl.evacuations import Evacuations
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.permissions import Permissions
from pondstack_agent.drivers.cxl.sysfs import Sysfs
from pondstack_agent.drivers.grant_records import extents_in
from pondstack_agent.host.hotplug import HOTPLUG

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of group [cxl]. `zero_on_host`: it zeroes what it gives back, and what it is given with content."""

    offline_attempts: int = 5
    offline_timeout_seconds: float = 30.0
    zero_on_host: bool = False
    make_partition: bool = True
    backing: str = NODE
    """What guests' slices are on this host (pondstack.domain.backing)."""


class SliceReturns:
    """Gives slices of one host back. `memdevs`: the CXL devices that are there now, by pool."""

    def __init__(
        self,
        *,
        host: str,
        sysfs: Sysfs,
        blocks: Blocks,
        allocations: Allocations,
        permissions: Permissions,
        settings: Settings,
        memdevs: Callable[[], Mapping[str, region.Memdev]],
        lock: DriverLock,
        step: Step,
    ) -> None:
        self._host, self._sysfs, self._blocks, self._settings = host, sysfs, blocks, settings
        self._allocations, self._permissions, self._memdevs = allocations, permissions, memdevs
        self._lock, self._step = lock, step
        self.evacuations = Evacuations()

    def take_offline(self, record: Mapping[str, Any]) -> None:
        """Offline, zero and drop all slices of a record, in whatever state they are; raises DeviceFailed."""
        memdev = self._memdevs().get(record["pool_uuid"])
        known = None if memdev is None else region.find(self._sysfs, memdev)
        if known is None and self._allocations.of_this_boot(record):
            raise DeviceFailed(
                f"the CXL region of pool {record['pool_uuid']} is gone, and nobody can tell whether the kernel of host "
                f"{self._host} still uses its memory; reboot the host"
            )
        dirty = self._to_zero(record)
        if known is None and not dirty:
            return  # after a reboot nothing of it is online
        if memdev is None:
            raise DeviceFailed(
                f"slices {sorted(dirty)} of pool {record['pool_uuid']} are not zeroed, and host {self._host} does not "
                "reach their device any more; bring it back and detach again, or fence the host"
            )
        slices = self._slices_to_zero(memdev) if dirty else self._slices(known)
        self._give_back(slices, record, dirty)

    def take_over(self, slices: Slices, grant: Grant) -> None:
        """Take unrecorded slices of ours out of the way of a new grant; they start anew. The caller holds the lock."""
        mine = set(indexes_of(grant.extents)) - self._allocations.indexes(grant.pool_uuid)
        slice_bytes = grant.slice_mib * MIB
        left = {item for index, item in slices.by_index(slice_bytes).items() if index in mine}
        if left:
            what = f"slices {sorted(mine)} of pool {grant.pool_name}, which are not on record,"
            self._evacuate(slices, left, what)
            for device in left:
                # A wider one is over slices of others, too; a first use looks at ours. What is handed over has content.
                alone = device.size_bytes == slice_bytes
                slices.down(device, zero=self._settings.zero_on_host and alone and not grant.handed, written=True)

    def _give_back(self, slices: Slices, record: Mapping[str, Any], dirty: set[int]) -> None:
        slice_bytes = record["slice_mib"] * MIB
        there = slices.by_index(slice_bytes)
        indexes = indexes_of(extents_in(record))
        # Without the lock: it may take long, and only concerns devices that nobody else changes.
        devices = [there[index] for index in indexes if index in there]
        self._evacuate(slices, devices, f"allocation {record['allocation_uuid']}")
        retired = dict.fromkeys(device for device in devices if device.driver == DEVDAX)
        for mapped in retired:
            slices.retire(mapped)
        for wide in dict.fromkeys(device for device in devices if device.size_bytes != slice_bytes):
            with self._lock.held():
                slices.down(wide)  # all at once: slices that are zeroed have a device each
        for index in indexes:
            if index in there or index in dirty:
                with self._lock.held():
                    # Looked at again for each: the device may have been told meanwhile to let another host in.
                    zero = index in dirty and index in self._to_zero(record)
                    device = slices.find(Extent(index, 1), slice_bytes)
                    if device is not None or zero:
                        written = index in self._allocations.dirty(record) and there.get(index) not in retired
                        slices.down(device or slices.open(Extent(index, 1), slice_bytes), zero=zero, written=written)
                    self._step("clean")
                    self._allocations.mark_clean(record, index)

    def _to_zero(self, record: Mapping[str, Any]) -> set[int]:
        """Return the slices of a record that this host has to zero: never one that the device keeps it out of.

        That one is its next owner's already, which looked at it before its first use. Nor one that is being handed
        over: its guest runs on with what is in it.
        """
        if not self._settings.zero_on_host:
            return set()
        pool, dirty = record["pool_uuid"], self._allocations.dirty(record)
        if not dirty or not self._permissions.known(pool):
            return dirty
        entries = self._permissions.table(pool).items()
        mine = {index for index, entry in entries if entry.host == self._host and entry.heir is None}
        if dirty - mine:
            LOG.warning("Host %s is kept out of slices %s of pool %s: not zeroed here", self._host, dirty - mine, pool)
        return dirty & mine

    def _evacuate(self, slices: Slices, devices: Iterable[DaxDevice], what: str) -> None:
        memory = [item for item in devices if item.driver == KMEM]
        blocks = [block for item in memory for block in slices.blocks(item)]
        with self.evacuations.of({slices.node(item) for item in memory}), HOTPLUG.offlining():
            self._step("offline")
            self._blocks.offline(
                blocks,
                what,
                attempts=self._settings.offline_attempts,
                seconds=self._settings.offline_timeout_seconds,
            )

    def _slices_to_zero(self, memdev: region.Memdev) -> Slices:
        """Return the slices of a region that is made if need be, as it is after a reboot; raises DeviceFailed."""
        with self._lock.held():
            try:
                slices = self._slices(region.ensure(self._sysfs, memdev))
            except HostUnusable as error:
                raise DeviceFailed(f"slices with content cannot be zeroed: {error.message}") from error
            slices.clear()
            return slices

    def _slices(self, found: region.Region | None) -> Slices:
        assert found is not None
        return Slices(self._sysfs, self._blocks, found, self._step)
