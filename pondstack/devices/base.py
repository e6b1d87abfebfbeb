"""Device side of a pool: who may use which slice. The controller is the only caller.

Drivers register under the entry point group `pondstack.pool_devices`; each passes the contract tests of
pondstack/tests/devices.
A fabric-manager driver (dynamic capacity, Redfish) implements the same few verbs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pondstack.domain.errors import InUse, PermissionHeld
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.zeroing import DeviceMemory


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device is. `serial` is unique; `address` is what a host driver needs to reach it."""

    serial: str
    slice_mib: int
    slices_total: int
    address: Mapping[str, Any]
    memory: str = DeviceMemory.FILE
    """What `sanitize` zeroes (DeviceMemory); agents are told of it with the address."""


@dataclass(frozen=True, slots=True)
class Heir:
    """The host and allocation that a slice is being handed over to."""

    host: str
    tag: str


@dataclass(frozen=True, slots=True)
class Permission:
    """One entry of the permission table (Pond section 4.1: one per slice).

    `heir` may use the slice, too, and has the permission once its holder's ends: a guest moves between the two hosts,
    and its hypervisors see to it that one of them writes at any instant.
    """

    host: str
    tag: str
    epoch: int
    heir: Heir | None = None


class PoolDevice(ABC):
    """One pool device. Every verb is idempotent; every verb raises DeviceFailed when the device does not answer."""

    unique_tags: ClassVar[bool] = False
    """Whether a tag is one grant, as in CXL 3.1: a repetition names all its slices, and none are added to it."""

    host_gives_back: ClassVar[bool] = False
    """Whether `revoke` and `fence` need the host: it is asked, and the permission ends once it gave the slice back.

    Until then they raise InUse, and the permission stays. Dynamic capacity (CXL 3.1) without forced release is such.
    """

    hands_over: ClassVar[bool] = False
    """Whether a slice may have an heir (`add_heir`)."""

    @abstractmethod
    def info(self) -> DeviceInfo:
        """Return what the device is; also the health probe."""

    @abstractmethod
    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Let `host` use the slices for allocation `tag`: all of them or none. An heir has them for its own then.

        Raises PermissionHeld when a slice is granted to somebody else, or the tag has another one and `unique_tags`;
        StaleEpoch when a newer epoch was seen, InUse while another controller does something with a slice.
        """

    def add_heir(self, host: str, extents: Sequence[Extent], *, tag: str, owner: str, epoch: int) -> None:
        """Let `host` use slices of allocation `owner`, too, for allocation `tag`, which has them next: all or none.

        Nothing changes where `tag` has them already; where `owner` is the heir of a former one, that one's permission
        ends. Raises PermissionHeld when a slice is not the owner's, has another heir, or the device does not hand over;
        StaleEpoch, NotFound, DeviceFailed.
        """
        raise PermissionHeld(
            f"this pool device does not hand slices {list(indexes_of(extents))} over from allocation {owner} to {tag} "
            f"of host {host} (epoch {epoch}): it has one host for each slice; have their content copied"
        )

    @abstractmethod
    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Take the slices of allocation `tag` back; slices that it does not hold are left alone.

        Those that have an heir are the heir's from now on; where `tag` is the heir, their holder has none any more.

        Raises StaleEpoch; InUse, with what it did take back, while the host keeps a slice (`host_gives_back`).
        """

    @abstractmethod
    def sanitize(self, index: int, *, epoch: int) -> None:
        """Zero a slice and verify it; raises PermissionHeld while anybody may use it, StaleEpoch, DeviceFailed.

        Epoch and permission hold from the check to the last zero: nobody is let in meanwhile. Raises InUse, without
        waiting, while another controller does something with the slice.
        """

    def fence(self, host: str, indexes: Iterable[int], *, epoch: int) -> None:
        """Keep a host out of the device for good, above all out of the slices `indexes`; returns once that is sure.

        All permissions of the host end, whatever their tags, and heirs have what it had; somebody else's stay. It may
        be repeated until it succeeds. Raises StaleEpoch, DeviceFailed, and InUse while the host can still reach one of
        the slices.
        """
        self.raise_epoch(epoch)
        self._end_permissions(host, epoch)
        left = [index for index, entry in self.permissions().items() if host in _hosts(entry)]
        if left:
            raise InUse(f"the device still lets host {host} into the slices {left}; fence it again")
        self.check_unreachable(indexes)

    def check_unreachable(self, indexes: Iterable[int]) -> None:
        """Raise InUse, or DeviceFailed, unless nobody can reach slices that nobody has a permission for.

        Of a device that guards each access that is its permission table's work: there is nothing to look at.
        """
        del indexes

    def check_unmapped(self, indexes: Iterable[int]) -> None:
        """Raise InUse, or DeviceFailed, when somebody is seen to use slices that are about to be zeroed.

        A second look where hosts reach memory past the permission table; of other devices there is nothing to look at.
        """
        del indexes

    def _end_permissions(self, host: str, epoch: int) -> None:
        tags: dict[str, list[int]] = {}
        for index, entry in self.permissions().items():
            if entry.host == host:
                tags.setdefault(entry.tag, []).append(index)
            if entry.heir is not None and entry.heir.host == host:
                tags.setdefault(entry.heir.tag, []).append(index)
        kept: list[str] = []
        for tag, mine in sorted(tags.items()):
            try:
                self.revoke(mine, tag=tag, epoch=epoch)
            except InUse as error:
                kept.append(error.message)  # the other tags' slices do not wait for this one's
        if kept:
            raise InUse("; ".join(kept))

    def raise_epoch(self, epoch: int) -> None:
        """Refuse all older epochs from now on; a new leader's first command. Raises StaleEpoch."""
        self.revoke((), tag="", epoch=epoch)

    @abstractmethod
    def permissions(self) -> Mapping[int, Permission]:
        """Return the permission table: slice index to permission."""


def _hosts(entry: Permission) -> set[str]:
    """Return the hosts that a permission lets in."""
    return {entry.host} | ({entry.heir.host} if entry.heir else set())
