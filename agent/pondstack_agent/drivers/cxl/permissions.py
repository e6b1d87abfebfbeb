"""The permission tables of devices that do not guard each access themselves, as this host sees them (read-only)."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from pondstack.devices import NAMESPACE, pool_uuid
from pondstack.devices.base import Heir, Permission
from pondstack.devices.emulated import EmulatedDevice
from pondstack.domain.model import indexes_of
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.grant_records import check_permission, extents_in, tags


class Permissions:
    """Tables of emulated devices, by pool. A device without one guards itself: there is nothing to look at."""

    def __init__(self, host: str, folders: Iterable[str]) -> None:
        self._host = host
        self._devices = [EmulatedDevice(folder) for folder in folders]

    def check(self, grant: Grant) -> None:
        """Raise PermissionHeld unless this host may use the slices of a grant; DeviceFailed."""
        if self.known(grant.pool_uuid):
            check_permission(self.table(grant.pool_uuid), self._host, grant)

    def heir(self, record: Mapping[str, Any]) -> Heir:
        """Return to whom a record's slices are being handed over, of empty names for nobody; raises DeviceFailed."""
        found = (entry for entry in self._entries(record) if entry.tag == record["allocation_uuid"])
        return next((entry.heir for entry in found if entry.heir), Heir("", ""))

    def has_alone(self, record: Mapping[str, Any]) -> bool:
        """Tell whether all slices of a record are this host's, and no other's any more; raises DeviceFailed."""
        own, entries = Heir(self._host, record["allocation_uuid"]), self._entries(record)
        return bool(entries) and all(Heir(entry.host, entry.tag) == own for entry in entries)

    def tag(self, pool: str, index: int) -> str:
        """Return for which allocation this host has a slice, and a name of its own where the device tells of none."""
        entry = self.table(pool).get(index)
        mine = tags(entry, self._host) if entry is not None else ()
        return min(mine, default=str(uuid.uuid5(NAMESPACE, f"unrecorded:{self._host}:{pool}:{index}")))

    def _entries(self, record: Mapping[str, Any]) -> list[Permission]:
        table = self.table(record["pool_uuid"])
        return [table[index] for index in indexes_of(extents_in(record)) if index in table]

    def known(self, pool: str) -> bool:
        """Tell whether there is a table for a pool; raises DeviceFailed."""
        return self._device(pool) is not None

    def table(self, pool: str) -> Mapping[int, Permission]:
        """Return the table of a pool, empty without one; raises DeviceFailed."""
        device = self._device(pool)
        return device.permissions() if device else {}

    def folder(self, pool: str) -> str:
        """Return the folder of a pool's table, "" without one."""
        device = self._device(pool)
        return str(device.path) if device else ""

    def slice_mib(self, pool: str) -> int | None:
        """Return the size of a pool's slices, None without a table."""
        device = self._device(pool)
        return device.info().slice_mib if device else None

    def _device(self, pool: str) -> EmulatedDevice | None:
        return next((device for device in self._devices if pool_uuid(device.info().serial) == pool), None)
