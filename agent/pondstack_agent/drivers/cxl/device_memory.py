"""Slices that a guest's QEMU maps itself: one character device for each extent (driver device_dax), no kernel's node.

All that a guest has in its slices is in them, and nothing of anybody else: so they can change their host without a copy
(Zombieland, EuroSys'18, section 5.3). Kernel: Documentation/ABI/testing/sysfs-bus-dax, Documentation/driver-api/dax.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pondstack.domain.backing import DEVDAX
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.domain.units import MIB
from pondstack.rpc.wire import Backing, Grant
from pondstack_agent.drivers.cxl.allocations import Allocations
from pondstack_agent.drivers.cxl.dax import DEVDAX as DRIVER
from pondstack_agent.drivers.cxl.dax import DaxDevice, FirstUse, Slices
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.permissions import Permissions
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.slice_backing import SliceBacking
from pondstack_agent.drivers.grant_records import extents_in
from pondstack_rdma import cpu_cache


class DeviceMemory(SliceBacking):
    """The record of an allocation has its backings for the head of the guest (pondstack_agent.qemu.wrapper)."""

    kind = DEVDAX

    def __init__(self, blocks: Blocks, allocations: Allocations, permissions: Permissions) -> None:
        self._blocks, self._allocations, self._permissions = blocks, allocations, permissions

    def prepare(self, grant: Grant) -> None:
        """Look whether this host can write its caches back, without which it must not share a device with another."""
        del grant
        if not cpu_cache.INSTRUCTION:
            raise failed(Failure.NO_WRITE_BACK)

    def spans(self, grant: Grant) -> Sequence[Extent]:
        """Return the extents: each is one file to QEMU."""
        return grant.extents

    def up(
        self,
        slices: Slices,
        span: Extent,
        slice_bytes: int,
        *,
        first_use: FirstUse | None,
        dirty: Callable[[], None],
    ) -> DaxDevice:
        """Have an extent as one character device."""
        return slices.expose(span, slice_bytes, first_use=first_use, dirty=dirty)

    def complete(self, slices: Slices, record: Mapping[str, Any], device: DaxDevice, to_come: Collection[str]) -> None:
        """Put on record what QEMU maps: from now on a guest can be started on it."""
        del device, to_come
        devices = self._devices(slices, record)
        backings = [
            {**backing.to_wire(), "align_bytes": slices.align_bytes(device), "start_bytes": device.start}
            for backing, device in zip(self._backings(slices, record, devices), devices, strict=True)
        ]
        self._allocations.put_backings(record, backings, self._permissions.folder(record["pool_uuid"]))

    def backings(self, slices: Slices, record: Mapping[str, Any]) -> tuple[Backing, ...]:
        """Return the device for each extent; raises DeviceFailed also while it is made, or given back."""
        if not self._allocations.has_backings(record):
            raise DeviceFailed(f"allocation {record['allocation_uuid']} is not all there; detach it and attach anew")
        return self._backings(slices, record, self._devices(slices, record))

    def drop_caches(self, slices: Slices, record: Mapping[str, Any]) -> None:
        """Drop what this host's CPUs have of before the guest came: bytes of an earlier owner, or prefetched."""
        for device in self._devices(slices, record):
            slices.write_back(device)

    def withdraw(self, record: Mapping[str, Any]) -> None:
        """Take what QEMU maps off the record."""
        self._allocations.drop_backings(record)

    def _backings(self, slices: Slices, record: Mapping[str, Any], devices: Sequence[DaxDevice]) -> tuple[Backing, ...]:
        extents = extents_in(record)
        sizes = [extent.count * record["slice_mib"] for extent in extents]
        return tuple(
            Backing(DEVDAX, size, self._blocks.distance_of_device(slices.node(device)), path=f"/dev/{device.name}")
            for size, device in zip(sizes, devices, strict=True)
        )

    def _devices(self, slices: Slices, record: Mapping[str, Any]) -> list[DaxDevice]:
        found = []
        for extent in extents_in(record):
            device = slices.find(extent, record["slice_mib"] * MIB)
            if device is None or device.driver != DRIVER:
                raise DeviceFailed(
                    f"slices {extent.start} to {extent.indexes[-1]} of allocation {record['allocation_uuid']} are no "
                    "character device any more; detach it and attach anew"
                )
            found.append(device)
        return found
