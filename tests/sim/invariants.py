"""What must hold after every step of a history. Nothing in here is told to the code under test."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pondstack.devices.base import Heir, Permission
from pondstack.domain import transitions
from pondstack.domain.model import Extent, Slice, indexes_of
from pondstack.domain.states import OWNED, SliceState
from tests.fixtures.memory_device import MemoryDevice
from tests.fixtures.memory_host import ATTACHMENTS, MemoryHost


class Violation(BaseException):
    """An invariant that did not hold. No code under test may catch it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that somebody relies on: a running guest's, or one whose attach was acknowledged."""

    vm: str
    host: str
    allocation_uuid: str
    pool_uuid: str
    indexes: tuple[int, ...]
    mark: bytes | None


class Watch:
    """Sees every change and raises Violation. `running`: guests by (host, guest); `promised`: answers to attaches.

    `judged(host)` hears of memory that is set aside because the host's agent is silent. `cut_short`: allocations whose
    host lost power, and CPU caches, since a guest wrote there.
    """

    def __init__(self, cut_short: Collection[str] = ()) -> None:
        self._cut_short = cut_short
        self.devices: dict[str, MemoryDevice] = {}
        self.hosts: dict[str, MemoryHost] = {}
        self.running: dict[tuple[str, str], Held] = {}
        self.promised: dict[tuple[str, str], Held] = {}
        self._slices: dict[tuple[str, int], Slice] = {}
        self._heirs: dict[str, str] = {}
        """By allocation, which one its slices are, or were, handed over to."""
        self._writers: dict[int, Any] = {}
        self._epochs: dict[str, int] = {}
        self._grants: dict[str, Any] = {}
        self._totals: dict[str, int] = {}
        self._hosts: set[str] = set()
        self._pools: set[str] = set()
        self.judged: Callable[[str], None] = lambda _host: None

    # The ledger

    def wrote(self, epoch: int, leading: int, writer: Any) -> None:
        """A ledger of `epoch` committed while the row says `leading`."""
        if epoch != leading:
            raise Violation("old_epoch_wrote", f"{writer} committed under epoch {epoch}, the row says {leading}")
        if self._writers.setdefault(epoch, writer) is not writer:
            raise Violation("two_writers", f"{writer} and {self._writers[epoch]} both write under epoch {epoch}")

    def ledger_changed(self, view: transitions.LedgerView) -> None:
        """The ledger has changed."""
        for broken in transitions.violations(view):
            raise Violation(f"ledger_{broken.code}", f"{broken.subject}: {broken.detail}")
        for uuid, pool in view.pools.items():
            if self._totals.setdefault(uuid, pool.slices_total) != pool.slices_total:
                raise Violation("total_changed", f"pool {uuid} has {pool.slices_total} slices")
        self._heirs |= {uuid: item.heir for uuid, item in view.allocations.items() if item.heir}
        before = self._slices
        self._slices = {(item.pool_uuid, item.index): item for item in view.slices}
        for key, item in self._slices.items():
            if "silent" in item.reason and item.host and (key not in before or before[key].reason != item.reason):
                self.judged(item.host)
        for item in self._slices.values():
            device = self.devices[item.pool_uuid]
            if item.state is SliceState.FREE and item.index in device.contents:
                raise Violation(
                    "free_not_zero", f"slice {item.index} is free and holds {device.contents[item.index]!r}"
                )
        self._check_online()
        for held in self.running.values():
            self._check_slices(held)
        for held in self.promised.values():
            self._check_promise(held)

    def known(self, hosts: set[str], pools: set[str]) -> None:
        """The ledger has these hosts and pools now: of those that it has forgotten nothing may be left."""
        for host in self._hosts - hosts:
            for item in self._slices.values():
                if item.host == host:
                    raise Violation("removed_with_memory", f"{host} is removed, {item.name} is its own ({item.state})")
        for item in self._slices.values():
            if item.pool_uuid in self._pools - pools and item.host:
                raise Violation("removed_with_memory", f"{item.name} of a removed pool is {item.host}'s ({item.state})")
        for held in (*self.running.values(), *self.promised.values()):
            if held.host in self._hosts - hosts or held.pool_uuid in self._pools - pools:
                raise Violation("removed_with_memory", f"{_about(held)} is there, its host or pool is removed")
        self._hosts, self._pools = hosts, pools

    def _check_online(self) -> None:
        """Nothing that a host has on record, its kernel uses it or may, is free in the ledger."""
        for name, host in self.hosts.items():
            for uuid, record in host.folder(ATTACHMENTS).items():
                for index in indexes_of(_extents(record["extents"])):
                    item = self._slices.get((record["pool_uuid"], index))
                    if item is not None and item.state is SliceState.FREE:
                        raise Violation("freed_while_online", f"slice {index} is free, {name} has it online for {uuid}")

    def _check_slices(self, held: Held) -> None:
        for index in held.indexes:
            item = self._slice(held, index)
            if item.state in (SliceState.FREE, SliceState.SANITIZING):
                raise Violation("running_memory_freed", f"{_about(held)}: slice {index} is {item.state}")
            if item.state in OWNED and not self._is_for(item, held):
                raise Violation(
                    "running_memory_handed_on", f"{_about(held)}: slice {index} is {item.allocation_uuid}'s"
                )

    def _is_for(self, item: Slice, held: Held) -> bool:
        """Tell whether a slice belongs to who relies on it, or is to, once its owner lets go of it."""
        owner = item.allocation_uuid
        return owner == held.allocation_uuid or self._heirs.get(owner or "") == held.allocation_uuid

    def _slice(self, held: Held, index: int) -> Slice:
        """Return a slice that somebody relies on."""
        item = self._slices.get((held.pool_uuid, index))
        if item is None:
            raise Violation("memory_lost", f"{_about(held)}: the ledger has no slice {index}")
        return item

    def _check_promise(self, held: Held) -> None:
        for index in held.indexes:
            item = self._slice(held, index)
            inherits = item.allocation_uuid != held.allocation_uuid and self._is_for(item, held)
            if not inherits and self._is_cut_short(item, held):
                continue
            if not inherits and (item.state, item.allocation_uuid) != (SliceState.ONLINE, held.allocation_uuid):
                detail = f"{_about(held)} was acknowledged; slice {index} is {item.state} ({item.reason})"
                raise Violation("acknowledged_lost", detail)

    def _is_cut_short(self, item: Slice, held: Held) -> bool:
        """Tell whether an heir's slice is aside since its former host lost power, and caches, before it let go."""
        owners = {owner for owner, heir in self._heirs.items() if heir == held.allocation_uuid}
        aside = item.state is SliceState.QUARANTINED and item.allocation_uuid == held.allocation_uuid
        return aside and bool(owners & set(self._cut_short))

    # Devices, disks, agents

    def device_changed(self, uuid: str) -> None:
        """A permission table or contents have changed."""
        device = self.devices[uuid]
        for held in (*self.running.values(), *self.promised.values()):
            if held.pool_uuid == uuid:
                self._check_device(held, device)

    def _check_device(self, held: Held, device: MemoryDevice) -> None:
        for index in held.indexes:
            entry: Permission | None = device.table.get(index)
            own = Heir(held.host, held.allocation_uuid)
            if entry is None or own not in (Heir(entry.host, entry.tag), entry.heir):
                raise Violation("permission_taken", f"{_about(held)}: the device gives slice {index} to {entry}")
            if held.mark is not None and device.contents.get(index) != held.mark:
                found = device.contents.get(index)
                raise Violation("memory_overwritten", f"{_about(held)}: slice {index} holds {found!r}")

    def obeyed(self, what: str) -> int:
        """Return the highest epoch that a device or an agent has obeyed."""
        return self._epochs.get(what, 0)

    def accepted(self, what: str, epoch: int, before: int | None = None) -> None:
        """A device or an agent has obeyed a command of `epoch`.

        `before`: what it had obeyed when the command reached it, for one that takes its time: an agent may hear of a
        newer leader while it carries out what it let in from the older one.
        """
        known = self.obeyed(what)
        if epoch < (known if before is None else before):
            raise Violation("old_epoch_obeyed", f"{what} obeyed epoch {epoch} after {known}")
        self._epochs[what] = max(epoch, known)

    def wiped(self, what: str) -> None:
        """An agent has lost its state with its disk: it is a new one, and the first epoch that it hears is its first.

        It has nothing that a former leader could harm; devices and the ledger, which have seen more, refuse that one.
        """
        self._epochs.pop(what, None)

    def disk_changed(self, name: str) -> None:
        """A host's attachments have changed."""
        owners: dict[tuple[str, int], str] = {}
        for host in self.hosts.values():
            for record in host.folder(ATTACHMENTS).values():
                for index in indexes_of(_extents(record["extents"])):
                    key = record["pool_uuid"], index
                    other = owners.setdefault(key, record["allocation_uuid"])
                    pair = other, record["allocation_uuid"]
                    handed = any(self._heirs.get(owner) == heir for owner, heir in (pair, pair[::-1]))
                    if len(set(pair)) > 1 and not handed:
                        detail = f"slice {index} is attached for {other} and {record['allocation_uuid']}"
                        raise Violation("two_owners", detail)
        for held in (*self.running.values(), *self.promised.values()):
            if held.host == name and held.allocation_uuid not in self.hosts[name].folder(ATTACHMENTS):
                raise Violation("attachment_lost", f"{_about(held)} is not on record any more")

    def granted(self, operation_id: str, grant: Mapping[str, Any]) -> None:
        """An assignment was answered."""
        told = grant["allocation_uuid"], str(grant["extents"])
        if self._grants.setdefault(operation_id, told) != told:
            raise Violation("granted_twice", f"operation {operation_id} got {self._grants[operation_id]} and {told}")

    def over_claimed(self, pool: str, used: int, total: int) -> None:
        """Placement's claims on a pool have changed."""
        if used > total:
            raise Violation("over_claimed", f"{used} MiB of pool {pool} are claimed, it has {total} MiB")

    # Those who rely on memory

    def promise(self, held: Held) -> None:
        """An attach was acknowledged to Nova."""
        self.promised[held.host, held.vm] = held
        if self._slices:
            self._check_promise(held)
        self.disk_changed(held.host)
        self.device_changed(held.pool_uuid)

    def started(self, held: Held) -> None:
        """A guest runs and has written its mark."""
        self.running[held.host, held.vm] = held
        key = held.host, held.vm
        if key in self.promised:
            self.promised[key] = held
        self._check_slices(held)
        self.device_changed(held.pool_uuid)

    def came_along(self, held: Held) -> None:
        """A guest is about to go on elsewhere with its slices: they hold what it has written where it was."""
        device = self.devices[held.pool_uuid]
        for index in held.indexes:
            if device.contents.get(index) != held.mark:
                found = device.contents.get(index)
                raise Violation("left_behind", f"{_about(held)}: slice {index} holds {found!r}")
        if (held.host, held.vm) in self.promised:  # it writes elsewhere from now on
            self.promised[held.host, held.vm] = replace(held, mark=None)

    def stopped(self, host: str, vm: str) -> None:
        """A guest has ended."""
        self.running.pop((host, vm), None)

    def forget(self, host: str, vm: str) -> None:
        """Nova gives the memory of a VM on a host back, or no longer claims it."""
        self.promised.pop((host, vm), None)


def _about(held: Held) -> str:
    return f"{held.vm} on {held.host} (allocation {held.allocation_uuid[:8]})"


def _extents(plain: Iterable[Any]) -> tuple[Extent, ...]:
    return tuple(item if isinstance(item, Extent) else Extent(item["start"], item["count"]) for item in plain)
