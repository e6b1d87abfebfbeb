"""A host in this process, for tests of agents: its disk, its guests' mappings, and the driver of its pools.

What is here outlives the agent, as disk and guests do; MemoryHostPool and the agent's other parts are made anew.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Self

from oslo_config import cfg

from pondstack.devices import pool_uuid
from pondstack.domain.errors import BadRequest, DeviceFailed, InUse, NotFound, OperationMismatch, PermissionHeld
from pondstack.domain.model import Extent, extents_of, indexes_of
from pondstack.rpc.wire import Attached, Backing, Grant
from pondstack.testing.memory_device import MemoryDevice
from pondstack_agent.drivers.base import HostPoolDriver

ATTACHMENTS = "attachments"


class MemoryRecords:
    """pondstack_agent.records.Records over a dict of the host's disk: each write is there wholly or not at all."""

    def __init__(self, folder: dict[str, dict[str, Any]]) -> None:
        self._folder = folder

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Write a record durably."""
        self._folder[_checked(key)] = record

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a record, None when there is none."""
        return self._folder.get(_checked(key))

    def remove(self, key: str) -> bool:
        """Remove a record durably; False when there was none."""
        return self._folder.pop(_checked(key), None) is not None

    def all(self) -> dict[str, dict[str, Any]]:
        """Return all records by key."""
        return dict(sorted(self._folder.items()))


def _checked(key: str) -> str:
    if not key or key.startswith("."):
        raise BadRequest(f"the id {key!r} is empty or hidden; use a UUID")
    return key


class MemoryHost:
    """One host. `disk`: records by folder; `mapped`: what each running guest maps, as (pool, slice indexes)."""

    def __init__(self, name: str, devices: Iterable[MemoryDevice]) -> None:
        self.name = name
        self.devices = {pool_uuid(device._info.serial): device for device in devices}
        self.disk: dict[str, dict[str, dict[str, Any]]] = {}
        self.mapped: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.lock = threading.RLock()

    def folder(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the records of one folder."""
        return self.disk.setdefault(name, {})

    def start_guest(self, guest: str, allocation_uuid: str) -> None:
        """Have a guest map its attachment and write into it; raises NotFound when it is not there."""
        with self.lock:
            record = self.folder(ATTACHMENTS).get(allocation_uuid)
            if record is None:
                raise NotFound(f"allocation {allocation_uuid} is not attached to host {self.name}")
            indexes = indexes_of(_extents(record))
            self.mapped[guest] = record["pool_uuid"], indexes
            device = self.devices[record["pool_uuid"]]
            device.contents.update(dict.fromkeys(indexes, guest.encode()))

    def stop_guest(self, guest: str) -> None:
        """End a guest; idempotent."""
        with self.lock:
            self.mapped.pop(guest, None)

    def is_mapped(self, pool: str, indexes: Iterable[int]) -> bool:
        """Tell whether a guest maps one of the slices; what cannot be looked at counts as mapped."""
        wanted = set(indexes)
        return self.devices[pool].failed or any(
            pool == other and wanted & set(held) for other, held in self.mapped.values()
        )


class MemoryHostPool(HostPoolDriver):
    """The pools of a MemoryHost; the same answers as pondstack_agent.drivers.emulated.EmulatedHostPool."""

    def __init__(self, host: MemoryHost, records: MemoryRecords | None = None) -> None:
        self._host = host
        self._records = records or MemoryRecords(host.folder(ATTACHMENTS))

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Refuse: there is nothing to configure."""
        raise NotImplementedError("made by tests, never from a configuration")

    def pools(self) -> tuple[str, ...]:
        """Return the pools whose devices answer."""
        return tuple(uuid for uuid, device in self._host.devices.items() if not device.failed)

    def attach(self, grant: Grant) -> tuple[Backing, ...]:
        """Online a grant, after the device's permission and the slices' zeros were checked."""
        with self._host.lock:
            record = self._records.get(grant.allocation_uuid)
            if record is not None and _extents(record) != grant.extents:
                raise OperationMismatch(f"allocation {grant.allocation_uuid} is attached with other slices")
            device = self._device(grant.pool_uuid)
            self._check_permission(device, grant)
            if record is None:
                _check_zero(device, grant)
                self._records.put(grant.allocation_uuid, {**grant.to_wire(), "backings": _backings(grant)})
            return self.backings(grant.allocation_uuid)

    def detach(self, allocation_uuid: str) -> bool:
        """Offline an allocation; raises InUse while a guest maps it."""
        with self._host.lock:
            record = self._records.get(allocation_uuid)
            if record is None:
                self._refuse_stranger(allocation_uuid)
                return False
            if self._host.is_mapped(record["pool_uuid"], indexes_of(_extents(record))):
                raise InUse(
                    f"allocation {allocation_uuid} is mapped on host {self._host.name}; destroy the guest first"
                )
            return self._records.remove(allocation_uuid)

    def attached(self) -> tuple[Attached, ...]:
        """Return what is on record, and what runs on this host's slices without being on record."""
        with self._host.lock:
            records = self._records.all()
            known = [self._describe(record) for record in records.values()]
            running = [item for item in map(self._describe, self._strangers(records)) if item.in_use]
            return (*known, *running)

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return the backings of an attached allocation; raises NotFound."""
        record = self._records.get(allocation_uuid)
        if record is None:
            raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._host.name}; attach it first")
        return tuple(Backing.from_wire(item) for item in record["backings"])

    def _describe(self, record: Mapping[str, Any]) -> Attached:
        extents = _extents(record)
        in_use = self._host.is_mapped(record["pool_uuid"], indexes_of(extents))
        return Attached(record["allocation_uuid"], record["consumer_uuid"], record["pool_uuid"], extents, in_use)

    def _device(self, uuid: str) -> MemoryDevice:
        device = self._host.devices.get(uuid)
        if device is None or device.failed:
            raise DeviceFailed(f"host {self._host.name} does not reach pool {uuid}; check the device")
        return device

    def _check_permission(self, device: MemoryDevice, grant: Grant) -> None:
        for index in indexes_of(grant.extents):
            entry = device.permissions().get(index)
            if entry is None or (entry.host, entry.tag) != (self._host.name, grant.allocation_uuid):
                raise PermissionHeld(
                    f"the device lets {entry or 'nobody'} use slice {index}, not allocation {grant.allocation_uuid} of "
                    f"host {self._host.name}; have the controller assign again"
                )

    def _strangers(self, known: Iterable[str]) -> list[dict[str, Any]]:
        """Return what the devices let this host use without its being on record."""
        found: dict[tuple[str, str], list[int]] = {}
        for uuid in self.pools():
            for index, entry in self._host.devices[uuid].table.items():
                if entry.host == self._host.name and entry.tag not in known:
                    found.setdefault((uuid, entry.tag), []).append(index)
        return [
            {
                "allocation_uuid": tag,
                "consumer_uuid": "",
                "pool_uuid": uuid,
                "extents": [{"start": run.start, "count": run.count} for run in extents_of(indexes)],
            }
            for (uuid, tag), indexes in sorted(found.items())
        ]

    def _refuse_stranger(self, allocation_uuid: str) -> None:
        for record in self._strangers(()):
            indexes = indexes_of(_extents(record))
            if record["allocation_uuid"] == allocation_uuid and self._host.is_mapped(record["pool_uuid"], indexes):
                raise InUse(
                    f"allocation {allocation_uuid} is not on record on host {self._host.name}, but a guest maps it"
                )


def _extents(record: Mapping[str, Any]) -> tuple[Extent, ...]:
    return tuple(Extent(item["start"], item["count"]) for item in record["extents"])


def _backings(grant: Grant) -> list[dict[str, Any]]:
    size = grant.slice_mib
    return [Backing("memory", extent.count * size, path=grant.pool_uuid).to_wire() for extent in grant.extents]


def _check_zero(device: MemoryDevice, grant: Grant) -> None:
    for index in indexes_of(grant.extents):
        if index in device.contents:
            raise DeviceFailed(f"slice {index} of pool {grant.pool_name} is not zero before its first use")
