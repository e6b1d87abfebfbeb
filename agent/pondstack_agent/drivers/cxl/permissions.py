"""The permission tables of devices that do not guard each access themselves, as this host sees them (read-only)."""

from collections.abc import Iterable, Mapping

from pondstack.devices import pool_uuid
from pondstack.devices.base import Permission
from pondstack.devices.emulated import EmulatedDevice


class Permissions:
    """Tables of emulated devices, by pool. A device without one guards itself: there is nothing to look at."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._devices = [EmulatedDevice(folder) for folder in folders]

    def known(self, pool: str) -> bool:
        """Tell whether there is a table for a pool; raises DeviceFailed."""
        return self._device(pool) is not None

    def table(self, pool: str) -> Mapping[int, Permission]:
        """Return the table of a pool, empty without one; raises DeviceFailed."""
        device = self._device(pool)
        return device.permissions() if device else {}

    def slice_mib(self, pool: str) -> int | None:
        """Return the size of a pool's slices, None without a table."""
        device = self._device(pool)
        return device.info().slice_mib if device else None

    def _device(self, pool: str) -> EmulatedDevice | None:
        return next((device for device in self._devices if pool_uuid(device.info().serial) == pool), None)
