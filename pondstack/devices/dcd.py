"""A pool device with dynamic capacity (CXL 3.1): a fabric manager adds extents to heads and asks for them back.

The permission table is the record, and also the log of intents: an entry is made before its extent is offered, and goes
after the device has confirmed that the extent is gone. Whatever a crash leaves between the two, a repetition settles.
From the entry to the device's answer the slices are locked against everybody else, also against the next leader: an
offer has no epoch, so that a controller that sleeps with one in its hands must be waited for.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from oslo_log import log

from pondstack.devices import emulated_files as files
from pondstack.devices.fabric import ByteRange, ExtentState, FabricManager
from pondstack.devices.folder_device import FolderDevice
from pondstack.devices.qmp_fabric import QmpFabric
from pondstack.domain.errors import DeviceFailed, HostUnusable, InUse, PondError
from pondstack.domain.model import Extent, extents_of, indexes_of
from pondstack.domain.units import MIB
from pondstack.domain.zeroing import DeviceMemory

LOG = log.getLogger(__name__)
DRIVER = "dcd"
GIVE_BACK_SECONDS = 1.0
"""So long a host has, within one revoke, to give back what it was asked for; a later revoke asks again."""

_POLL_SECONDS = 0.02


class DcdDevice(FolderDevice):
    """A device folder (`pondstack-manage device create`) with heads (`device head`)."""

    driver: ClassVar[str] = DRIVER
    memory: ClassVar[DeviceMemory | None] = DeviceMemory.CXL
    unique_tags: ClassVar[bool] = True
    host_gives_back: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        fabric: Callable[[Path], FabricManager] = QmpFabric.of,
        give_back_seconds: float = GIVE_BACK_SECONDS,
    ) -> None:
        super().__init__(path)
        self._open_fabric = fabric
        self._give_back_seconds = give_back_seconds

    def grant(self, host: str, extents: Sequence[Extent], *, tag: str, epoch: int) -> None:
        """Offer the slices to `host`, which accepts them in its own time; they may be used from then on.

        Raises PermissionHeld, StaleEpoch, NotFound; InUse when the head has one of them without a permission;
        HostUnusable without a head; DeviceFailed when nobody knows whether they were offered: the permission stays.
        """
        indexes = indexes_of(extents)
        self._check_indexes(indexes)
        fabric = self._fabric()
        if host not in fabric.heads():
            raise HostUnusable(f"host {host} has no head at {self.path}; list it with `pondstack-manage device head`")
        with files.slices_locked(self.path, indexes, alone=True):
            before = {index for index, entry in self.permissions().items() if (entry.host, entry.tag) == (host, tag)}
            self._claim(indexes, host, tag, epoch)
            try:
                self._offer(fabric, host, extents, tag, before)
            except DeviceFailed:
                raise
            except PondError:
                self._give_back(set(indexes) - before, tag, epoch)
                raise

    def revoke(self, indexes: Iterable[int], *, tag: str, epoch: int) -> None:
        """Ask for the slices of `tag`, and end the permissions of those that are gone from the head.

        Raises StaleEpoch, DeviceFailed, InUse when some are not, and while another controller deals with one.
        """
        wanted = set(indexes)
        with files.slices_locked(self.path, wanted, alone=True):
            self._change(epoch, lambda _table: None)
            hosts: dict[str, list[int]] = {}
            for index, entry in self.permissions().items():
                if index in wanted and entry.tag == tag:
                    hosts.setdefault(entry.host, []).append(index)
            for host, held in hosts.items():  # one: a tag is one grant
                kept = self._take_back(host, held)
                self._give_back(set(held) - set(kept), tag, epoch)
                if kept:
                    raise InUse(_not_given_back(host, kept, self.path))

    def check_unreachable(self, indexes: Iterable[int]) -> None:
        """Raise InUse when a head has one of the slices that nobody has a permission for: somebody else gave it."""
        wanted = list(indexes)
        self._check_indexes(wanted)
        fabric, granted = self._fabric(), self.permissions()
        self._check_absent(fabric, [index for index in wanted if index not in granted])

    def _check_ungranted(self, index: int) -> None:
        self._check_absent(self._fabric(), [index])

    def _check_absent(self, fabric: FabricManager, indexes: Sequence[int]) -> None:
        """Raise InUse when a head has a slice.

        Heads that do not answer are passed over: this is a second look, and a permission ended only when its own head
        confirmed it. Otherwise one host that hangs would keep the slices of all from being zeroed.
        """
        for host in fabric.heads():
            try:
                states = self._states(fabric, host, indexes)
            except DeviceFailed as error:
                LOG.warning("The head of host %s was not asked for the slices %s: %s", host, indexes, error)
                continue
            has = [index for index in indexes if states[index] is not ExtentState.ABSENT]
            if has:
                raise InUse(
                    f"the head of host {host} has the slices {has} of {self.path} without a permission; release them "
                    "there (cxl-release-dynamic-capacity), and find out who added them"
                )

    def _offer(self, fabric: FabricManager, host: str, extents: Sequence[Extent], tag: str, before: set[int]) -> None:
        """Offer what the head does not have yet; `before` is what it may have, by an earlier try of this grant."""
        try:
            fabric.add(host, self._ranges(extents), tag=tag)
            return
        except InUse:
            states = self._states(fabric, host, indexes_of(extents))
        has = {index for index, state in states.items() if state is not ExtentState.ABSENT}
        if has - before:
            raise InUse(
                f"the head of host {host} has the slices {sorted(has - before)} of {self.path} without a permission; "
                "release them there (cxl-release-dynamic-capacity), and find out who added them"
            )
        missing = extents_of(set(states) - has)
        if missing:
            fabric.add(host, self._ranges(missing), tag=tag)

    def _take_back(self, host: str, held: Sequence[int]) -> dict[int, ExtentState]:
        """Ask the host once, and wait; returns what its head still has then."""
        fabric = self._fabric()
        kept = self._kept(fabric, host, held)
        accepted = [index for index, state in kept.items() if state is ExtentState.ACCEPTED]
        if accepted:
            ends = time.monotonic() + self._give_back_seconds
            fabric.release(host, self._ranges(extents_of(accepted)))
            while (kept := self._kept(fabric, host, held)) and time.monotonic() < ends:
                time.sleep(_POLL_SECONDS)
        return kept

    def _kept(self, fabric: FabricManager, host: str, indexes: Sequence[int]) -> dict[int, ExtentState]:
        states = self._states(fabric, host, indexes)
        return {index: state for index, state in states.items() if state is not ExtentState.ABSENT}

    def _states(self, fabric: FabricManager, host: str, indexes: Sequence[int]) -> Mapping[int, ExtentState]:
        ranges = self._ranges([Extent(index, 1) for index in indexes])
        return dict(zip(indexes, fabric.states(host, ranges), strict=True))

    def _ranges(self, extents: Iterable[Extent]) -> list[ByteRange]:
        size_bytes = self.info().slice_mib * MIB
        return [ByteRange(one.start * size_bytes, one.count * size_bytes) for one in extents]

    def _fabric(self) -> FabricManager:
        return self._open_fabric(self.path)


def _not_given_back(host: str, kept: Mapping[int, ExtentState], path: Path) -> str:
    offered = sorted(index for index, state in kept.items() if state is ExtentState.OFFERED)
    accepted = sorted(index for index, state in kept.items() if state is ExtentState.ACCEPTED)
    texts = []
    if accepted:
        texts.append(
            f"host {host} was asked for the slices {accepted} of {path} and has not given them back; take them offline "
            "there, or power it off: they are asked for again, and never taken by force"
        )
    if offered:
        texts.append(
            f"host {host} has not answered the offer of the slices {offered} of {path}, and may accept it yet; it "
            "needs a kernel with dynamic capacity, or power it off"
        )
    return "; ".join(texts)
