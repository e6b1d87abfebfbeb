"""How processes of a history reach what is theirs: database, devices, disk. Here faults wait for their moment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pondstack.devices.base import DeviceInfo, Permission, PoolDevice
from pondstack.domain.errors import Unavailable
from pondstack.domain.model import Extent
from tests.fixtures.memory_device import MemoryDevice
from tests.fixtures.memory_host import MemoryRecords

from .kernel import Process, ProcessDied, Scheduler
from .network import Network


class Trap:
    """A fault that waits in one process for a moment in its code."""

    def __init__(self, kind: str, moment: str, spring: Callable[[Process], None]) -> None:
        self.kind = kind
        self.moment = moment
        self.spring = spring


class Moments:
    """Marks where something may happen to a process."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.hurry = False

    def pass_by(self, moment: str) -> bool:
        """Be at a moment: traps spring, and others may come first. Returns whether a commit's answer is lost."""
        task = self._scheduler.current()
        if task is None:
            return False
        process = task.process
        if not process.alive:
            raise ProcessDied
        lost = False
        for trap in list(process.traps):
            if trap.moment in (moment, "any"):
                process.traps.remove(trap)
                self._scheduler.faults[trap.kind] += 1
                self._scheduler.note(f"FAULT {trap.kind} at {moment}")
                if trap.kind == "commit unknown":
                    lost = True
                else:
                    trap.spring(process)
        if not process.alive:
            raise ProcessDied
        if process.paused_until > self._scheduler.now:
            self._scheduler.sleep(0.0)
        elif process.rng.random() < 0.3:
            self._scheduler.sleep(process.rng.random() * 0.01)
        return lost


class DatabaseLink:
    """A process's connection to the database. `epoch`: whose ledger writes through it, None for reads and the lease."""

    def __init__(
        self,
        store: Any,
        *,
        scheduler: Scheduler,
        network: Network,
        moments: Moments,
        process: Process,
        retry_seconds: float,
        committed: Callable[[int, Process], None],
        epoch: int | None = None,
    ) -> None:
        self.store = store
        self._scheduler = scheduler
        self._network = network
        self._moments = moments
        self._process = process
        self._retry_seconds = retry_seconds
        self._committed = committed
        self._epoch = epoch

    def for_epoch(self, epoch: int) -> "DatabaseLink":
        """Return a connection for the ledger of an epoch."""
        link = object.__new__(DatabaseLink)
        link.__dict__.update(self.__dict__, _epoch=epoch)
        return link

    def write(self, work: Callable[[Any], Any], *named: Any) -> Any:
        """Run a transaction, once more when the answer to its commit was lost. Raises Unavailable."""
        self._moments.pass_by("db.before")
        while True:
            self._reach()
            answer = self.store.write(work, *named)
            if self._epoch is not None:
                self._committed(self._epoch, self._process)
            if not self._moments.pass_by("db.after"):
                return answer

    def read(self, work: Callable[[Any], Any]) -> Any:
        """Run a read. Raises Unavailable."""
        self._reach()
        return self.store.read(work)

    def ping(self) -> None:
        """Raise Unavailable when the database does not answer."""
        self._reach()

    def _reach(self) -> None:
        if self._process.rng.random() < 0.15:
            self._scheduler.sleep(self._process.rng.random() * 0.005)
        ends = self._scheduler.now + self._retry_seconds
        while not (self._network.reaches(self._process.name) and self._network.reaches("database")):
            if self._scheduler.now >= ends:
                raise Unavailable("the database does not answer; look at its log")
            self._scheduler.sleep(0.1)


class DeviceLink(PoolDevice):
    """A controller's way to a device."""

    hands_over = True

    def __init__(self, device: MemoryDevice, moments: Moments) -> None:
        self._device = device
        self._moments = moments

    def info(self) -> DeviceInfo:
        """Return what the device is."""
        return self._device.info()

    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Let a host in."""
        self._moments.pass_by("device.before")
        self._device.grant(host, extents, tag=tag, epoch=epoch)
        self._moments.pass_by("device.after")

    def add_heir(self, host: str, extents: Sequence[Extent], *, tag: str, owner: str, epoch: int) -> None:
        """Let an heir in."""
        self._moments.pass_by("device.before")
        self._device.add_heir(host, extents, tag=tag, owner=owner, epoch=epoch)
        self._moments.pass_by("device.after")

    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Take slices back."""
        self._moments.pass_by("device.before")
        self._device.revoke(indexes, tag=tag, epoch=epoch)
        self._moments.pass_by("device.after")

    def sanitize(self, index: int, *, epoch: int) -> None:
        """Zero a slice."""
        self._moments.pass_by("zeroing.before")
        self._device.sanitize(index, epoch=epoch)
        self._moments.pass_by("device.after")

    def permissions(self) -> Mapping[int, Permission]:
        """Return the table."""
        return self._device.permissions()


class DiskRecords(MemoryRecords):
    """An agent's records: it may be stopped before and after each write."""

    def __init__(self, folder: dict[str, dict[str, Any]], moments: Moments, changed: Callable[[], None]) -> None:
        super().__init__(folder)
        self._moments = moments
        self._changed = changed
        self.folder: Any = None

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Write a record durably."""
        self._moments.pass_by("disk.before")
        super().put(key, record)
        self._changed()
        self._moments.pass_by("disk.after")

    def remove(self, key: str) -> bool:
        """Remove a record durably."""
        self._moments.pass_by("disk.before")
        found = super().remove(key)
        self._changed()
        self._moments.pass_by("disk.after")
        return found
