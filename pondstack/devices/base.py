"""Device side of a pool: who may use which slice. The controller is the only caller.

Drivers register under the entry point group `pondstack.pool_devices`; each passes the contract tests of
pondstack/tests/devices.
A fabric-manager driver (dynamic capacity, Redfish) implements the same few verbs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pondstack.domain.model import Extent


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device is. `serial` is unique; `address` is what a host driver needs to reach it."""

    serial: str
    slice_mib: int
    slices_total: int
    address: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Permission:
    """One entry of the permission table (Pond section 4.1: one per slice)."""

    host: str
    tag: str
    epoch: int


class PoolDevice(ABC):
    """One pool device. Every verb is idempotent; every verb raises DeviceFailed when the device does not answer."""

    @abstractmethod
    def info(self) -> DeviceInfo:
        """Return what the device is; also the health probe."""

    @abstractmethod
    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Let `host` use the slices for allocation `tag`: all of them or none.

        Raises PermissionHeld when a slice is granted to somebody else, StaleEpoch when a newer epoch was seen, InUse
        while another controller zeroes a slice.
        """

    @abstractmethod
    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Take the slices of allocation `tag` back; slices that it does not hold are left alone. Raises StaleEpoch."""

    @abstractmethod
    def sanitize(self, index: int, *, epoch: int) -> None:
        """Zero a slice and verify it; raises PermissionHeld while anybody may use it, StaleEpoch, DeviceFailed.

        Epoch and permission hold from the check to the last zero: nobody is let in meanwhile. Raises InUse while
        another controller does something with the slice.
        """

    def raise_epoch(self, epoch: int) -> None:
        """Refuse all older epochs from now on; a new leader's first command. Raises StaleEpoch."""
        self.revoke((), tag="", epoch=epoch)

    @abstractmethod
    def permissions(self) -> Mapping[int, Permission]:
        """Return the permission table: slice index to permission."""
