"""Host side of emulated devices: a slice is online when its attachment is on record in the agent's state folder."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from oslo_config import cfg
from oslo_log import log

from pondstack.devices import pool_uuid
from pondstack.devices.base import Permission
from pondstack.devices.emulated import EmulatedDevice
from pondstack.devices.emulated_files import MEMORY, first_written_byte
from pondstack.devices.mappings import FileId, file_id, overlaps
from pondstack.domain.backing import FILE
from pondstack.domain.errors import DeviceFailed, InUse, NotFound, OperationMismatch
from pondstack.domain.model import extents_of, indexes_of
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import HostZeroing
from pondstack.rpc.wire import Attached, Backing, Grant
from pondstack_agent.drivers.base import HostPoolDriver, SliceNotZero
from pondstack_agent.drivers.grant_records import check_permission, check_purpose, describe, extents_in, tags
from pondstack_agent.host.mapped_files import mapped_ranges
from pondstack_agent.qemu.attachment_lock import FOLDER, unheld
from pondstack_agent.records import Records

LOG = log.getLogger(__name__)

DISTANCE = 20
"""SLIT distance of pool memory: one hop further than local memory, which has 10."""

Mapped = Mapping[str, Sequence[range] | None]
"""Device path to mapped byte ranges of its memory file."""
Tables = Mapping[str, Mapping[int, Permission]]
"""Device path to its permission table, which has all slices of the pool; empty where it cannot be looked at."""


class EmulatedHostPool(HostPoolDriver):
    """The emulated devices that one host reaches."""

    hands_over = True
    backing = FILE

    def __init__(self, *, host: str, state_dir: Path, device_paths: Iterable[str]) -> None:
        self._host = host
        self._devices = [EmulatedDevice(path) for path in device_paths]
        self._records = Records(state_dir / FOLDER)
        self._lock = threading.RLock()
        self._failed: set[Path] = set()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Build the driver from [agent] state_dir and [emulated] device_paths."""
        return cls(host=conf.host, state_dir=Path(conf.agent.state_dir), device_paths=conf.emulated.device_paths)

    def pools(self) -> tuple[str, ...]:
        """Return the pools whose devices answer."""
        return tuple(self._by_pool())

    def zeroing(self) -> HostZeroing:
        """Return that the device zeroes the file that is mapped here."""
        return HostZeroing.FILE

    def attach(self, grant: Grant) -> tuple[Backing, ...]:
        """Online a grant, after the device's permission and the slices' zeros were checked.

        What is handed over is not zero: its guest runs on it elsewhere.
        """
        with self._lock:
            record = self._records.get(grant.allocation_uuid)
            if record is not None and extents_in(record) != grant.extents:
                raise OperationMismatch(
                    f"allocation {grant.allocation_uuid} is attached with other slices; detach it first"
                )
            device = self._device(grant.pool_uuid)
            check_permission(device.permissions(), self._host, grant)
            if record is None:
                check_purpose(grant, self._records.all().values())
                if not grant.handed:
                    _check_zero(device, grant)
                self._records.put(grant.allocation_uuid, _record(device.path, grant))
            return self.backings(grant.allocation_uuid)

    def detach(self, allocation_uuid: str) -> bool:
        """Offline an allocation; raises InUse while a process maps it or a starting guest holds it."""
        with self._lock:
            record = self._records.get(allocation_uuid)
            if record is None:
                return self._detach_unrecorded(allocation_uuid)
            with unheld(self._records.path(allocation_uuid)) as free:
                if not free or (not self._is_shared(record, _tables([record])) and _is_mapped(record, _scan([record]))):
                    raise InUse(
                        f"allocation {allocation_uuid} of consumer {record['consumer_uuid']} is mapped by a process of "
                        f"host {self._host}; destroy the guest first"
                    )
                return self._records.remove(allocation_uuid)

    def attached(self) -> tuple[Attached, ...]:
        """Return what is on record, and what runs on this host's slices without being on record."""
        with self._lock:
            records = self._records.all()
            strangers = self._strangers(records)
            mapped = _scan([*records.values(), *strangers])
            tables = _tables(records.values())
            known = [self._attached(record, mapped, tables) for record in records.values()]
            running = [
                describe(record, in_use=True, backing=FILE) for record in strangers if _is_mapped(record, mapped)
            ]
            return (*known, *running)

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return the backings of an attached allocation; raises NotFound."""
        record = self._records.get(allocation_uuid)
        if record is None:
            raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._host}; attach it first")
        return tuple(Backing.from_wire(item) for item in record["backings"])

    def heir(self, allocation_uuid: str) -> str:
        """Return the host that an attached allocation is being handed over to, "" for none; raises DeviceFailed."""
        record = self._records.get(allocation_uuid)
        entries = _entries(record, EmulatedDevice(record["device_path"]).permissions()) if record is not None else []
        return next((entry.heir.host for entry in entries if entry.heir and entry.tag == allocation_uuid), "")

    def take_up(self, allocation_uuid: str) -> bool:
        """Return whether the device says that slices are this host's alone; all hosts have one cache of a file."""
        record = self._records.get(allocation_uuid)
        if record is None:
            raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._host}; attach it first")
        entries = _entries(record, EmulatedDevice(record["device_path"]).permissions())
        return bool(entries) and all((entry.host, entry.tag) == (self._host, allocation_uuid) for entry in entries)

    def _by_pool(self) -> dict[str, EmulatedDevice]:
        found: dict[str, EmulatedDevice] = {}
        for device in self._devices:
            try:
                found[pool_uuid(device.info().serial)] = device
                self._failed.discard(device.path)
            except DeviceFailed as error:
                if device.path not in self._failed:
                    LOG.warning("Host %s does not reach a pool device: %s", self._host, error)
                self._failed.add(device.path)
        return found

    def _device(self, pool: str) -> EmulatedDevice:
        device = self._by_pool().get(pool)
        if device is None:
            raise DeviceFailed(
                f"host {self._host} does not reach pool {pool}; check [emulated] device_paths and the device's folder"
            )
        return device

    def _attached(self, record: Mapping[str, Any], mapped: Mapped, tables: Tables) -> Attached:
        in_use = not self._is_shared(record, tables) and _is_mapped(record, mapped)
        if not in_use:
            with unheld(self._records.path(record["allocation_uuid"])) as free:
                in_use = not free
        return describe(record, in_use=in_use, backing=FILE)

    def _is_shared(self, record: Mapping[str, Any], tables: Tables) -> bool:
        """Tell whether another host may use the slices of a record, too, while their guest moves.

        Its guest may be a process of this machine, where several hosts are on one. The lock of the record tells then
        whether this host's own guest holds them: QEMU has it as long as it lives.
        """
        entries = _entries(record, tables[record["device_path"]])
        return any(entry.heir is not None and self._host in (entry.host, entry.heir.host) for entry in entries)

    def _strangers(self, known: Iterable[str]) -> list[dict[str, Any]]:
        """Return what the devices let this host use without its being on record (a lost state folder)."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        slices: dict[tuple[str, str], list[int]] = {}
        for pool, device in self._by_pool().items():
            slice_mib = device.info().slice_mib
            for index, entry in device.permissions().items():
                for tag in sorted(tags(entry, self._host) - set(known)):
                    slices.setdefault((pool, tag), []).append(index)
                    found[pool, tag] = {
                        "allocation_uuid": tag,
                        "consumer_uuid": "",
                        "pool_uuid": pool,
                        "slice_mib": slice_mib,
                        "device_path": str(device.path),
                    }
        for key, record in found.items():
            record["extents"] = [{"start": e.start, "count": e.count} for e in extents_of(slices[key])]
        return list(found.values())

    def _detach_unrecorded(self, allocation_uuid: str) -> bool:
        strangers = [record for record in self._strangers(()) if record["allocation_uuid"] == allocation_uuid]
        mapped = _scan(strangers)
        if any(_is_mapped(record, mapped) for record in strangers):
            raise InUse(
                f"allocation {allocation_uuid} is not on record on host {self._host}, but a process maps its slices; "
                "find it in /proc/*/maps and end it first"
            )
        return False


def _tables(records: Iterable[Mapping[str, Any]]) -> Tables:
    """Return the permission tables of the records' devices, each read once."""
    found: dict[str, Mapping[int, Permission]] = {}
    for path in {record["device_path"] for record in records}:
        try:
            found[path] = EmulatedDevice(path).permissions()
        except DeviceFailed:
            found[path] = {}
    return found


def _entries(record: Mapping[str, Any], table: Mapping[int, Permission]) -> list[Permission]:
    """Return what a device's table says of the slices of a record."""
    return [table[index] for index in indexes_of(extents_in(record)) if index in table]


def _record(device: Path, grant: Grant) -> dict[str, Any]:
    """Return what pondstack_agent.qemu.wrapper reads: the grant, where the device is, and the ranges of its file."""
    backings = [
        Backing(
            kind=FILE,
            size_mib=extent.count * grant.slice_mib,
            distance=DISTANCE,
            path=str(device / MEMORY),
            offset_bytes=extent.start * grant.slice_mib * MIB,
        ).to_wire()
        for extent in grant.extents
    ]
    return {**grant.to_wire(), "device_path": str(device), "backings": backings}


def _check_zero(device: EmulatedDevice, grant: Grant) -> None:
    """Refuse slices with somebody's bytes in them: they were not sanitised."""
    slice_bytes = grant.slice_mib * MIB
    for index in indexes_of(grant.extents):
        if first_written_byte(device.path, index * slice_bytes, (index + 1) * slice_bytes) is not None:
            raise SliceNotZero(
                f"slice {index} of pool {grant.pool_name} is not zero before its first use: it was not sanitised, and "
                "is quarantined; audit it",
                [index],
            )


def _scan(records: Iterable[Mapping[str, Any]]) -> Mapped:
    """Return the mapped ranges of each record's memory file, None for a device that cannot be looked at."""
    files: dict[str, FileId | None] = {}
    for record in records:
        path = record["device_path"]
        try:
            files[path] = file_id(Path(path) / MEMORY)
        except OSError:
            files[path] = None
    ranges = mapped_ranges(file for file in files.values() if file is not None)
    return {path: None if file is None else ranges[file] for path, file in files.items()}


def _is_mapped(record: Mapping[str, Any], mapped: Mapped) -> bool:
    """Tell whether a process maps slices of the record; what cannot be looked at counts as mapped."""
    ranges = mapped[record["device_path"]]
    slice_bytes = record["slice_mib"] * MIB
    return ranges is None or any(
        overlaps(ranges, extent.start * slice_bytes, (extent.start + extent.count) * slice_bytes)
        for extent in extents_in(record)
    )
