"""CXL pool devices of one host. A slice is online when the kernel says so; allocations.py records for whom."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from oslo_config import cfg
from oslo_log import log

from pondstack.devices import pool_uuid
from pondstack.domain.backing import DEVDAX, NODE
from pondstack.domain.errors import Conflict, DeviceFailed, InUse, NotFound, OperationMismatch, PondError
from pondstack.domain.model import indexes_of
from pondstack.domain.purpose import Purpose
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import HostZeroing
from pondstack.rpc.wire import Attached, Backing, Grant
from pondstack_agent.drivers.base import HostPoolDriver
from pondstack_agent.drivers.cxl import amount, region
from pondstack_agent.drivers.cxl.allocations import OFFLINE_FAILED, OFFLINING, ONLINE, Allocations, kind_of
from pondstack_agent.drivers.cxl.dax import FirstUse, Slices, Step
from pondstack_agent.drivers.cxl.device_memory import DeviceMemory
from pondstack_agent.drivers.cxl.driver_lock import DriverLock
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.node_memory import NodeMemory
from pondstack_agent.drivers.cxl.permissions import Permissions
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.returns import Settings, SliceReturns
from pondstack_agent.drivers.cxl.slice_backing import SliceBacking
from pondstack_agent.drivers.cxl.sysfs import Sysfs
from pondstack_agent.drivers.cxl.unrecorded import Stranger, strangers
from pondstack_agent.drivers.grant_records import check_purpose, describe, extents_in
from pondstack_agent.host import memory_users
from pondstack_agent.locks import NamedLocks
from pondstack_agent.partition import Partition
from pondstack_rdma import cpu_cache

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
        self._permissions = Permissions(host, permission_tables)
        self._settings = settings or Settings()
        self.backing = self._settings.backing
        # Without a way to write caches back nothing is attached as devdax either.
        self.hands_over = self.backing == DEVDAX and bool(cpu_cache.INSTRUCTION)
        self._sysfs = sysfs or Sysfs()
        self._blocks = Blocks(self._sysfs)
        self._step = step
        self._allocations = Allocations(state_dir, step)
        partition, make = partition or Partition((), ()), self._settings.make_partition
        self._backings: dict[str, SliceBacking] = {
            NODE: NodeMemory(self._blocks, self._allocations, partition, make=make),
            DEVDAX: DeviceMemory(self._blocks, self._allocations, self._permissions),
        }
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
                backing=DEVDAX if options.backing == "devdax" else NODE,
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
        """Online a grant after pre-flight, the device's permission and a look for zeros; undone when a step fails.

        What is handed over has its guest's content.
        """
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
            self._permissions.check(grant)
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
                self._kind(record).withdraw(record)  # first: who finds it offlining does not look for guests
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
            if node is None:
                super().vacate(allocation_uuid)
                return
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
            return (*known, *(describe(item.record, in_use=item.in_use, backing=item.backing) for item in others))

    def heir(self, allocation_uuid: str) -> str:
        """Return the host that an attached allocation is being handed over to, "" for none; raises DeviceFailed."""
        record = self._allocations.get(allocation_uuid)
        return self._permissions.heir(record).host if record is not None else ""

    def lost_caches(self, allocation_uuid: str) -> bool:
        """Tell whether this host restarted while an allocation was being handed over to the heir that it has now."""
        heir = self._allocations.restarted_with(allocation_uuid)
        return bool(heir) and heir == self._heir_tag(allocation_uuid)

    def _heir_tag(self, allocation_uuid: str) -> str:
        record = self._allocations.get(allocation_uuid)
        return self._permissions.heir(record).tag if record is not None else ""

    def take_up(self, allocation_uuid: str) -> bool:
        """Return whether the device says that slices are this host's alone; its caches hold nothing of before then."""
        with self._by_allocation.holding(allocation_uuid):
            record = self._allocations.get(allocation_uuid)
            if record is None:
                raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._host}; attach it first")
            alone = self._permissions.has_alone(record)
            if alone:  # without the driver's lock: reports and other allocations do not wait for all of its memory
                self._kind(record).drop_caches(self._slices(self._memdev(record["pool_uuid"])), record)
            return alone

    def backings(self, allocation_uuid: str) -> tuple[Backing, ...]:
        """Return the node or the device for each extent; raises NotFound, DeviceFailed when it is not all there."""
        with self._lock.held():
            record = self._allocations.get(allocation_uuid)
            if record is None:
                raise NotFound(f"allocation {allocation_uuid} is not attached to host {self._host}; attach it first")
            return self._kind(record).backings(self._slices(self._memdev(record["pool_uuid"])), record)

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
            self._permissions.check(grant)
            self._allocations.note_restart(tag, self._heir_tag(tag))
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
        kind = self._kind(self._allocations.get(tag), grant)
        kind.prepare(grant)
        with self._lock.held():
            slices = Slices(self._sysfs, self._blocks, region.ensure(self._sysfs, memdev), self._step)
            slices.clear()
            self._giving_back.take_over(slices, grant)
            kind.check(slices, grant, slice_bytes)
            check_purpose(grant, self._allocations.all())
            others = self._allocations.indexes(grant.pool_uuid, but=tag)
            amount.check_disjoint(set(indexes_of(grant.extents)), others, grant.pool_name)
            self._step("record")
            self._allocations.begin(grant, kind.kind)
        record = self._allocations.get(tag)
        assert record is not None
        first_use = None if again or grant.handed else FirstUse(grant.pool_name, self._settings.zero_on_host)
        try:
            for span in kind.spans(grant):
                with self._lock.held():  # one device at a time: reports and other allocations do not wait for all
                    mark = partial(self._allocations.mark_dirty, record, span.indexes)
                    device = kind.up(slices, span, slice_bytes, first_use=first_use, dirty=mark)
            with self._lock.held():
                kind.complete(slices, record, device, to_come)
        except PondError as error:
            self._undo(tag, error)
            raise
        self._step("state")
        self._allocations.put_state(tag, ONLINE)

    def _kind(self, record: Mapping[str, Any] | None, grant: Grant | None = None) -> SliceBacking:
        """Return what the slices of a record are, or will be for a grant: other purposes than a guest's need a node."""
        if record is not None:
            return self._backings[kind_of(record)]
        guest = grant is not None and grant.purpose == Purpose.GUEST
        return self._backings[self._settings.backing if guest else NODE]

    def _undo(self, tag: str, cause: PondError) -> None:
        record = self._allocations.get(tag)
        assert record is not None
        try:
            self._kind(record).withdraw(record)
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
                names = partial(self._permissions.tag, pool)
                found += strangers(pool, slices, size, self._allocations.indexes(pool), names, consumers)
        return found

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
            return describe(record, in_use=not unused, backing=kind_of(record))

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
