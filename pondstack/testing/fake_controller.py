"""A controller in one process for tests of agents: real devices, a ledger in a dict, and answers that get lost."""

import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pondstack.devices import pool_uuid
from pondstack.devices.base import PoolDevice
from pondstack.domain.errors import Conflict, NotFound, OperationMismatch, PoolShortage
from pondstack.domain.model import Extent, extents_of, indexes_of
from pondstack.rpc.wire import Grant, Report, Sample


class FakeController:
    """The calls of ControllerAPI that an agent makes. A free slice is taken lowest index first.

    `before[method]` and `after[method]` hold one-shot actions, called with the arguments: raise in one of them to fail
    before anything was done, or to lose the answer of what was done.
    """

    def __init__(self, devices: Mapping[str, PoolDevice], epoch: int = 1) -> None:
        self.epoch = epoch
        self.names = {pool_uuid(device.info().serial): name for name, device in devices.items()}
        self.devices = {pool_uuid(device.info().serial): device for device in devices.values()}
        self.states: dict[str, str] = {}
        self.grants: dict[str, Grant] = {}
        self.operations: dict[str, tuple[dict[str, Any], str]] = {}
        self.reports: list[Report] = []
        self.samples: list[Sample] = []
        self.delegated: list[dict[str, Any]] = []
        self.freed: list[int] = []
        self.released_buffers: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.before: defaultdict[str, list[Callable[..., Any]]] = defaultdict(list)
        self.after: defaultdict[str, list[Callable[..., Any]]] = defaultdict(list)
        self._lock = threading.RLock()

    def assign(
        self,
        *,
        operation_id: str,
        consumer_uuid: str,
        host: str,
        pool_uuid: str,
        pool_mib: int,
        guest_mib: int,
        project_id: str = "",
        user_id: str = "",
        shape: Sequence[int] | None = None,
    ) -> Grant:
        """Take free slices; raises PoolShortage, NotFound, OperationMismatch."""
        request = {"consumer": consumer_uuid, "host": host, "pool": pool_uuid, "mib": pool_mib, "guest": guest_mib}
        request |= {"project": project_id, "user": user_id, "shape": list(shape) if shape else None}
        with self._call("assign", operation_id=operation_id, consumer_uuid=consumer_uuid):
            if operation_id in self.operations:
                asked, allocation = self.operations[operation_id]
                if asked != request:
                    raise OperationMismatch(f"operation {operation_id} was used for another request; make a new id")
                return self.grants[allocation]
            if pool_uuid not in self.devices:
                raise NotFound(f"no pool {pool_uuid}; see `openstack memory pool list`")
            device = self.devices[pool_uuid]
            info = device.info()
            allocation = str(uuid.uuid4())
            extents = self._free_extents(device, pool_mib // info.slice_mib, shape)
            device.grant(host, extents, tag=allocation, epoch=self.epoch)
            self.grants[allocation] = Grant(
                allocation_uuid=allocation,
                consumer_uuid=consumer_uuid,
                host=host,
                pool_uuid=pool_uuid,
                pool_name=self.names[pool_uuid],
                device=dict(info.address),
                slice_mib=info.slice_mib,
                extents=extents,
                epoch=self.epoch,
            )
            self.operations[operation_id] = (request, allocation)
            self.states[allocation] = "assigning"
        return self.grants[allocation]

    def acknowledge(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Note that an allocation is online; raises Conflict when it was released."""
        with self._call("acknowledge", operation_id=operation_id, allocation_uuid=allocation_uuid, host=host):
            if self.states.get(allocation_uuid) not in ("assigning", "online"):
                raise Conflict(f"allocation {allocation_uuid} is gone; assign again")
            self.states[allocation_uuid] = "online"

    def release(self, *, operation_id: str, allocation_uuid: str, host: str) -> None:
        """Take an allocation back and sanitise its slices at once."""
        with self._call("release", operation_id=operation_id, allocation_uuid=allocation_uuid, host=host):
            self._free(allocation_uuid)

    def heartbeat(self, report: Report) -> dict[str, Any]:
        """Note a report and settle its releases."""
        with self._call("heartbeat", report=report):
            self.reports.append(report)
            for allocation_uuid in report.released:
                self._free(allocation_uuid)
            return {"epoch": self.epoch, "forget": list(report.released), "pools": self._pools()}

    def telemetry(self, *, host: str, samples: Sequence[Sample]) -> None:
        """Keep what was measured."""
        with self._call("telemetry", host=host, samples=samples):
            self.samples += samples

    def delegate(self, **offer: Any) -> None:
        """Keep what a host lends; `delegated` has all that was told."""
        with self._call("delegate", **offer):
            self.delegated.append(offer)

    def reclaim(self, *, operation_id: str, host: str, mib: int) -> dict[str, Any]:
        """Answer the buffers that a test says are free, `freed`."""
        with self._call("reclaim", operation_id=operation_id, host=host, mib=mib):
            return {"indexes": list(self.freed)}

    def release_buffers(self, *, operation_id: str, **release: Any) -> None:
        """Keep a borrower's release, by operation id."""
        with self._call("release_buffers", operation_id=operation_id, **release):
            self.released_buffers[operation_id] = release

    def lead_again(self, epoch: int) -> None:
        """Restart with a new epoch."""
        self.epoch = epoch
        self.grants = {key: replace(grant, epoch=epoch) for key, grant in self.grants.items()}

    @property
    def held(self) -> dict[str, str]:
        """Allocations that are not free, with their states."""
        return {key: state for key, state in self.states.items() if state != "free"}

    @contextmanager
    def _call(self, method: str, **arguments: Any) -> Any:
        if self.before[method]:
            self.before[method].pop(0)(**arguments)
        with self._lock:
            self.calls.append(method)
            yield
        if self.after[method]:
            self.after[method].pop(0)(**arguments)

    def _free(self, allocation_uuid: str) -> None:
        if self.states.get(allocation_uuid) in (None, "free"):
            return
        grant = self.grants[allocation_uuid]
        device, indexes = self.devices[grant.pool_uuid], indexes_of(grant.extents)
        device.revoke(indexes, tag=allocation_uuid, epoch=self.epoch)
        for index in indexes:
            device.sanitize(index, epoch=self.epoch)
        self.states[allocation_uuid] = "free"

    def _pools(self) -> dict[str, Any]:
        found = {}
        for pool, device in self.devices.items():
            info = device.info()
            found[pool] = {
                "name": self.names[pool],
                "device": dict(info.address),
                "slice_mib": info.slice_mib,
                "slices_total": info.slices_total,
            }
        return found

    @staticmethod
    def _free_extents(device: PoolDevice, count: int, shape: Sequence[int] | None) -> tuple[Extent, ...]:
        taken = device.permissions()
        free = [index for index in range(device.info().slices_total) if index not in taken]
        if len(free) < count:
            raise PoolShortage(f"{count} slices asked for, {len(free)} free; wait for releases or use another pool")
        if not shape:
            return extents_of(free[:count])
        found: list[Extent] = []
        for run in extents_of(free):
            while len(found) < len(shape) and run.count >= shape[len(found)]:
                found.append(Extent(run.start, shape[len(found)]))
                rest = run.count - found[-1].count
                if not rest:
                    break
                run = Extent(run.start + found[-1].count, rest)
        if len(found) < len(shape):
            raise PoolShortage(f"no free extents of the shape {list(shape)}")
        return tuple(found)
