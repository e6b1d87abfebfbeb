"""CXL pool devices of one host. A slice is online when the kernel says so; allocations.py records for whom."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from oslo_config import cfg
from oslo_log import log

from pondstack.devices import NAMESPACE, pool_uuid
from pondstack.domain.backing import NODE
from pondstack.domain.errors import Conflict, DeviceFailed, InUse, NotFound, OperationMismatch, PondError
from pondstack.domain.model import indexes_of
from pondstack.domain.purpose import Purpose
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import HostZeroing
from pondstack.rpc.wire import Attached, Backing, Grant
from pondstack_agent.drivers.base import HostPoolDriver
from pondstack_agent.drivers.cxl import amount, partition_check, region
from pondstack_agent.drivers.cxl.allocations import OFFLINE_FAILED, OFFLINING, ONLINE, Allocations
from pondstack_agent.drivers.cxl.dax import FirstUse, Slices, Step
from pondstack_agent.drivers.cxl.driver_lock import DriverLock
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.permissions import Permissions
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.returns import Settings, SliceReturns
from pondstack_agent.drivers.cxl.sysfs import Sysfs
from pondstack_agent.drivers.cxl.unrecorded import Stranger, strangers
from pondstack_agent.drivers.grant_records import check_permission, check_purpose, describe, extents_in
from pondstack_agent.host import memory_users
from pondstack_agent.locks import NamedLocks
from pondstack_agent.partition import Partition

LOG = log.getLogger(__name__)


class CxlHostPool(HostPoolDriver):
    """The CXL devices that one host reaches. `pools`: serial of the CXL device to serial of the pool."""

    nodes = True
    slow_detach = True

    def __init__(
        self,
        *,
        host: str,
        state_dir: Path,
        pools: Mapping[int, str],
        permission_tables: Iterable[str] = (),
        settings: Settings | None = None,
        partition: Partition | None = None,
        sysfs: Sysfs | None = None,
        step: Step = lambda _name: None,
    ) -> None:
        self._host = host
        self._serials = {pool_uuid(serial): number for number, serial in pools.items()}
        self._permissions = Permissions(permission_tables)
        self._settings = settings or Settings()
        self._partition = partition or Partition((), ())
        self._sysfs = sysfs or Sysfs()
        self._blocks = Blocks(self._sysfs)
        self._step = step
        self._allocations = Allocations(state_dir, step)
        self._lock = DriverLock(state_dir / "cxl.lock")
        self._by_allocation = NamedLocks()
        self._missing: set[str] = set()
        self._giving_back = SliceReturns(
            host=host,
            sysfs=self._sysfs,
            blocks=self._blocks,
            allocations=self._allocations,
            permissions=self._permissions,
            settings=self._settings,
            memdevs=self._memdevs,
            lock=self._lock,
            step=step,
        )
        region.load(region.DISCOVERY)
        self.recover()
        self._giving_back.evacuations.ended(self._nodes())

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Build the driver from [agent] state_dir and group [cxl]."""
        options = conf.cxl
        return cls(
            host=conf.host,
            state_dir=Path(conf.agent.state_dir),
            pools={int(number, 0): serial for number, serial in options.pools.items()},
            permission_tables=options.permission_table,
            settings=Settings(
                offline_attempts=options.offline_attempts,
                offline_timeout_seconds=options.offline_timeout_seconds,
                zero_on_host=options.sanitize == "host",
                make_partition=options.make_partition,
            ),
            partition=Partition.from_conf(conf),
        )

    def pools(self) -> tuple[str, ...]:
        """Return the pools whose devices are there."""
        return tuple(self._memdevs())

    def zeroing(self) -> HostZeroing:
        """Return what [cxl] sanitize says."""
        return HostZeroing.HOST if self._settings.zero_on_host else HostZeroing.DEVICE

    def attach(self, grant: Grant) -> tuple[Backing, ...]:
        """Online a grant after pre-flight, the device's permission and a look for zeros; undone when a step fails."""
        with self._by_allocation.holding(grant.allocation_uuid):
            record = self._allocations.get(grant.allocation_uuid)
            if record is not None and extents_in(record) != grant.extents:
                raise OperationMismatch(
                    f"allocation {grant.allocation_uuid} is attached with other slices; detach it first"
                )
            state = self._allocations.state(grant.allocation_uuid) if record else ""
            if state in (OFFLINING, OFFLINE_FAILED):
                raise Conflict(f"allocation {grant.allocation_uuid} is going offline; attach with a new operation id")
            memdev = self._memdev(grant.pool_uuid)
            self._check_permission(grant)
            if state != ONLINE:
                self._bring_online(memdev, grant)
            return self.backings(grant.allocation_uuid)

    def begin_detach(self, allocation_uuid: str) -> bool:
        """Let nobody use an allocation any more, without waiting for its memory; False when it is not on record.

        Raises InUse while its guest runs.
        """
        with self._lock.held():
            record = self._allocations.get(allocation_uuid)
            if record is None:
                return False
            with self._allocations.unused(record, memory_users.guests()) as unused:
                if not unused:
                    raise InUse(
                        f"allocation {allocation_uuid} of consumer {record['consumer_uuid']} is used by its guest on "
                        f"host {self._host}; destroy the guest first"
                    )
                if self._allocations.state(allocation_uuid) != OFFLINE_FAILED:
                    self._allocations.put_state(allocation_uuid, OFFLINING)
            return True

    def detach(self, allocation_uuid: str) -> bool:
        """Offline an allocation; raises InUse while its guest runs, DeviceFailed when others keep its memory online."""
        with self._by_allocation.holding(allocation_uuid):
            if not self.begin_detach(allocation_uuid):
                with self._lock.held():
                    return self._detach_unrecorded(allocation_uuid)
            record = self._allocations.get(allocation_uuid)
            assert record is not None
            try:
                self._giving_back.take_offline(record)
            except DeviceFailed as error:
                self._allocations.put_state(allocation_uuid, OFFLINE_FAILED, error.message)
                raise
            self._allocations.forget(allocation_uuid)
            return True

    def vacate(self, allocation_uuid: str) -> None:
        """Let go of the guest that runs now, which by the kernel has left the node."""
        with self._lock.held():
            record, node = self._allocations.get(allocation_uuid), self.backings(allocation_uuid)[0].host_node
            assert record is not None
            assert node is not None
            pid = memory_users.guests().get(record["consumer_uuid"])
            if pid is not None:
                self._allocations.vacate(record, pid, node)

    def attached(self) -> tuple[Attached, ...]:
        """Return what is on record, and slices of this host's that are not and that somebody uses.

        Slices that are not on record and that nobody uses are taken offline, where a table tells how large slices are.
        """
        with self._lock.held():
            running = memory_users.guests()
            known = [self._attached(record, running) for record in self._allocations.all()]
            others = [item for item in self._strangers() if not self._swept(item.record, item.in_use)]
            return (*known, *(describe(item.record, in_use=item.in_use, backing=NODE) for item in others))

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return the node of the host for each extent; raises NotFound, DeviceFailed when it is not all online."""
        with self._lock.held():
            record = self._allocations.get(allocation_uuid)
            if record is None:
                raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._host}; attach it first")
            slices = self._slices(self._memdev(record["pool_uuid"]))
            by_index, found = slices.by_index(record["slice_mib"] * MIB), []
            for extent in extents_in(record):
                devices = [by_index[i] for i in extent.indexes if i in by_index]
                if len(devices) < extent.count or not all(slices.is_online(item) for item in devices):
                    raise DeviceFailed(f"allocation {allocation_uuid} is not all online; detach it and attach anew")
                node = slices.node(devices[0])
                size, distance = extent.count * record["slice_mib"], self._blocks.distance(node)
                found.append(Backing(kind=NODE, size_mib=size, distance=distance, host_node=node))
            return tuple(found)

    def stuck(self) -> dict[str, str]:
        """Return the allocations whose memory did not go offline within its bound, with the reason."""
        return self._allocations.stuck()

    def evacuations(self) -> dict[int, int | None]:
        """Return how often memory of each node was taken offline; once more at the start, as a kill hides one."""
        return self._giving_back.evacuations.by_node()

    def recover(self) -> None:
        """After a reboot: bring online what was, where the device still lets this host; drop the rest.

        What a guest uses stays on record, whatever its device says now.
        """
        records = [(record, record["allocation_uuid"]) for record in self._allocations.all()]
        lost = {tag: rec for rec, tag in records if self._allocations.state(tag) == ONLINE and not self._is_online(rec)}
        guests = memory_users.guests()
        # Of their node nothing is online for these yet, and no guest takes it.
        to_come = {tag for tag, record in lost.items() if record["consumer_uuid"] not in guests}
        for tag, record in lost.items():
            to_come.discard(tag)
            with self._allocations.unused(record, guests) as unused:
                if unused:
                    self._bring_back(Grant.from_wire(record), to_come)
                else:
                    LOG.error("Allocation %s is used by its guest, and its memory is not all online", tag)

    def _bring_back(self, grant: Grant, to_come: Collection[str]) -> None:
        tag = grant.allocation_uuid
        try:
            self._check_permission(grant)
            # What is in it was written by the same consumer: it had been online for it.
            self._bring_online(self._memdev(grant.pool_uuid), grant, again=True, to_come=to_come)
            LOG.info("Allocation %s is online again", tag)
        except PondError as error:
            LOG.warning("Allocation %s was online, is not any more and is dropped: %s", tag, error)
            if self._allocations.state(tag) == ONLINE:  # else it was undone
                self._undo(tag, error)

    def _bring_online(
        self, memdev: region.Memdev, grant: Grant, *, again: bool = False, to_come: Collection[str] = ()
    ) -> None:
        """Online a grant's slices, proved to be zero unless they had been online for it before (`again`).

        `to_come`: allocations that a boot took, and that come online after this one.
        """
        slice_bytes, tag = grant.slice_mib * MIB, grant.allocation_uuid
        indexes = indexes_of(grant.extents)
        holders = {record["consumer_uuid"] for record in self._allocations.all()} | {grant.consumer_uuid}
        if grant.purpose != Purpose.TIER:  # a tier's node is for everybody on this host
            partition_check.ensure(self._partition, holders, make=self._settings.make_partition)
        with self._lock.held():
            slices = Slices(self._sysfs, self._blocks, region.ensure(self._sysfs, memdev), self._step)
            slices.clear()
            self._giving_back.take_over(slices, grant)
            slices.check(indexes, slice_bytes)
            check_purpose(grant, self._allocations.all())
            amount.check_disjoint(set(indexes), self._allocations.indexes(grant.pool_uuid, but=tag), grant.pool_name)
            self._step("record")
            self._allocations.begin(grant)
        record = self._allocations.get(tag)
        assert record is not None
        first_use = None if again else FirstUse(grant.pool_name, self._settings.zero_on_host)
        try:
            for index in indexes:
                with self._lock.held():  # one slice at a time: reports and other allocations do not wait for all
                    mark = partial(self._allocations.mark_dirty, record, index)
                    device = slices.up(index, slice_bytes, first_use=first_use, dirty=mark)
            self._check_node(slices.node(device), grant, to_come)
        except PondError as error:
            self._undo(tag, error)
            raise
        self._step("state")
        self._allocations.put_state(tag, ONLINE)

    def _check_node(self, node: int, grant: Grant, to_come: Collection[str]) -> None:
        """Look whether guests get no more of a node than is online of it, for this grant too; raises DeviceFailed."""
        held = self._allocations.held(grant, but=to_come)
        amount.check_node(node, amount.by_allocation(held), self._blocks.online_mib(node))
        for consumer in self._partition.unbound_holders({record["consumer_uuid"]: node for record in held}):
            LOG.warning("Guest %s was started before the partition: its own memory may take pool memory", consumer)

    def _undo(self, tag: str, cause: PondError) -> None:
        record = self._allocations.get(tag)
        assert record is not None
        try:
            self._giving_back.take_offline(record)
        except DeviceFailed as error:
            LOG.error("Allocation %s did not come online and cannot be undone: %s", tag, error)
            self._allocations.put_state(tag, OFFLINE_FAILED, f"{cause.message}; {error.message}")
        else:
            self._allocations.forget(tag)

    def _strangers(self) -> list[Stranger]:
        """Return slices that are there and not on record (a lost state folder)."""
        consumers = {record["consumer_uuid"] for record in self._allocations.all()}
        found: list[Stranger] = []
        for pool, memdev in self._memdevs().items():
            if region.find(self._sysfs, memdev) is not None:
                slices, size = self._slices(memdev), self._permissions.slice_mib(pool)
                names = partial(self._tag, pool)
                found += strangers(pool, slices, size, self._allocations.indexes(pool), names, consumers)
        return found

    def _tag(self, pool: str, index: int) -> str:
        entry = self._permissions.table(pool).get(index)
        if entry is not None and entry.host == self._host:
            return entry.tag
        return str(uuid.uuid5(NAMESPACE, f"unrecorded:{self._host}:{pool}:{index}"))

    def _swept(self, record: Mapping[str, Any], in_use: bool) -> bool:
        """Take slices offline that are not on record and that nobody uses; False when they stay."""
        if in_use or self._permissions.slice_mib(record["pool_uuid"]) is None:
            return False
        tag = record["allocation_uuid"]
        try:
            self._giving_back.take_offline(record)
        except DeviceFailed as error:
            LOG.warning("Slices of allocation %s are not on record and do not go offline: %s", tag, error)
            return False
        LOG.warning("Slices of allocation %s were online, not on record and unused: they are offline now", tag)
        return True

    def _detach_unrecorded(self, allocation_uuid: str) -> bool:
        for stranger in self._strangers():
            if stranger.record["allocation_uuid"] == allocation_uuid:
                if stranger.in_use:
                    raise InUse(
                        f"allocation {allocation_uuid} is not on record on host {self._host}, but a process has pages "
                        "on its node; find it in /proc/*/numa_maps and end it first"
                    )
                self._giving_back.take_offline(stranger.record)
                return True
        return False

    def _attached(self, record: Mapping[str, Any], running: Mapping[str, int]) -> Attached:
        with self._allocations.unused(record, running) as unused:
            return describe(record, in_use=not unused, backing=NODE)

    def _is_online(self, record: Mapping[str, Any]) -> bool:
        try:
            self.backings(record["allocation_uuid"])
        except DeviceFailed:
            return False
        return True

    def _nodes(self) -> set[int]:
        """Return the nodes of the allocations that are online."""
        online = [record["allocation_uuid"] for record in self._allocations.all() if self._is_online(record)]
        found = {backing.host_node for tag in online for backing in self.backings(tag)}
        return {node for node in found if node is not None}

    def _check_permission(self, grant: Grant) -> None:
        if self._permissions.known(grant.pool_uuid):
            check_permission(self._permissions.table(grant.pool_uuid), self._host, grant)

    def _memdevs(self) -> dict[str, region.Memdev]:
        by_serial = {memdev.serial: memdev for memdev in region.memdevs(self._sysfs)}
        found = {pool: by_serial[number] for pool, number in self._serials.items() if number in by_serial}
        for pool in self._serials.keys() - found.keys() - self._missing:
            LOG.warning("Host %s: %s", self._host, failed(Failure.NO_DEVICE, serial=self._serials[pool]))
        self._missing = self._serials.keys() - found.keys()
        return found

    def _memdev(self, pool: str) -> region.Memdev:
        memdev = self._memdevs().get(pool)
        if memdev is None:
            why = failed(Failure.NO_DEVICE, serial=self._serials[pool]) if pool in self._serials else "see [cxl] pools"
            raise DeviceFailed(f"host {self._host} does not reach pool {pool}: {why}")
        return memdev

    def _slices(self, memdev: region.Memdev) -> Slices:
        found = region.find(self._sysfs, memdev)
        if found is None:
            raise DeviceFailed(f"there is no region over {memdev.name}; attach again")
        return Slices(self._sysfs, self._blocks, found, self._step)
