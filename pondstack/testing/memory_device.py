"""A pool device in this process: permission table, epoch and contents. It passes the device contract tests."""

import threading
from collections.abc import Iterable, Mapping, Sequence

from pondstack.devices.base import DeviceInfo, Permission, PoolDevice
from pondstack.domain.errors import DeviceFailed, NotFound, PermissionHeld, StaleEpoch
from pondstack.domain.model import Extent, indexes_of

DRIVER = "memory"


class MemoryDevice(PoolDevice):
    """One device. `contents` holds what guests wrote, by slice: no entry means zeros. `failed`: it does not answer.

    `stuck`: slices that cannot be zeroed.
    """

    def __init__(self, serial: str, slices: int, slice_mib: int = 1024) -> None:
        address = {"driver": DRIVER, "path": serial}
        self._info = DeviceInfo(serial=serial, slice_mib=slice_mib, slices_total=slices, address=address)
        self.contents: dict[int, bytes] = {}
        self.table: dict[int, Permission] = {}
        self.epoch = 0
        self.failed = False
        self.stuck: set[int] = set()
        self._lock = threading.RLock()

    def info(self) -> DeviceInfo:
        """Return what the device is."""
        if self.failed:
            raise DeviceFailed(f"the device {self._info.serial} does not answer")
        return self._info

    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Let `host` use the slices; raises PermissionHeld, StaleEpoch, NotFound, DeviceFailed."""
        with self._lock:
            indexes = self._check(indexes_of(extents))
            self.check_epoch(epoch)
            for index in indexes:
                holder = self.table.get(index)
                if holder and (holder.host, holder.tag) != (host, tag):
                    raise PermissionHeld(f"slice {index} belongs to allocation {holder.tag} of host {holder.host}")
            self.table.update({index: Permission(host, tag, epoch) for index in indexes})
            self._accepted(epoch)

    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Take the slices of `tag` back; raises StaleEpoch, DeviceFailed."""
        with self._lock:
            self.info()
            self.check_epoch(epoch)
            for index in indexes:
                if index in self.table and self.table[index].tag == tag:
                    del self.table[index]
            self._accepted(epoch)

    def sanitize(self, index: int, *, epoch: int) -> None:
        """Zero a slice and verify it; raises PermissionHeld, StaleEpoch, NotFound, DeviceFailed."""
        with self._lock:
            self._check([index])
            self.check_epoch(epoch)
            holder = self.table.get(index)
            if holder:
                raise PermissionHeld(f"slice {index} is still granted to host {holder.host}; revoke it first")
            self._accepted(epoch)
            if index in self.stuck:
                raise DeviceFailed(f"slice {index} of {self._info.serial} is not zero after sanitising; replace it")
            self.contents.pop(index, None)

    def permissions(self) -> Mapping[int, Permission]:
        """Return the permission table."""
        self.info()
        return dict(self.table)

    def check_epoch(self, epoch: int) -> None:
        """Raise StaleEpoch when a newer epoch was seen."""
        if epoch < self.epoch:
            raise StaleEpoch(f"{self._info.serial} has seen epoch {self.epoch} and refuses epoch {epoch}")

    def _accepted(self, epoch: int) -> None:
        self.epoch = epoch

    def _check(self, indexes: Sequence[int]) -> Sequence[int]:
        total = self.info().slices_total
        for index in indexes:
            if not 0 <= index < total:
                raise NotFound(f"the device has slices 0 to {total - 1}, not {index}; audit the ledger")
        return indexes
