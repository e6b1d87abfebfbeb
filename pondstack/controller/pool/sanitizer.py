"""The release pipeline: SANITIZING slices are revoked at the device, zeroed, verified, and become FREE.

Slices that were handed over are not zeroed: they are their heir's at the device, too, once their former owner is gone.

It runs apart from every request: a VM start never waits for it (Pond section 4.2).
"""

from collections.abc import Callable, Sequence

from oslo_log import log

from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.db.read.reader import SqlReader
from pondstack.devices.base import PoolDevice
from pondstack.domain.causes import Cause
from pondstack.domain.errors import DeviceFailed, InUse, PermissionHeld, PondError, StaleEpoch
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)
CHUNK_SLICES = 8
"""How many slices are zeroed between two writes of the ledger."""


class Sanitizer:
    """Drains all pools. `changed` is called when slices moved on, `stopping` tells when to leave off."""

    def __init__(
        self,
        ledger: Ledger,
        reader: SqlReader,
        devices: DeviceRegistry,
        changed: Callable[[], None],
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._devices = devices
        self._changed = changed
        self._stopping = stopping

    def drain(self) -> None:
        """Bring each SANITIZING slice to FREE or QUARANTINED; the slices of a device that does not answer wait."""
        for uuid in self._devices.uuids():
            try:
                self._drain(uuid)
            except DeviceFailed as error:
                # The reconciler wakes us at its next round; meanwhile the other devices' slices get their turn.
                LOG.warning("Sanitising of pool %s waits: %s", uuid, error)

    def _drain(self, uuid: str) -> None:
        waiting = [item.index for item in self._reader.slices(uuid, state=SliceState.SANITIZING)]
        self._end_former_owners(self._devices.get(uuid))
        for start in range(0, len(waiting), CHUNK_SLICES):
            if self._stopping():
                return
            self._clean(uuid, waiting[start : start + CHUNK_SLICES])

    def _end_former_owners(self, device: PoolDevice) -> None:
        """End permissions of allocations that are no more, where heirs wait for them; the reconciler has the rest."""
        if not device.hands_over:
            return
        handed: dict[str, list[int]] = {}
        for index, entry in device.permissions().items():
            if entry.heir is not None:
                handed.setdefault(entry.tag, []).append(index)
        # What is no more never comes back: the device knows if a leader that is none any more says so.
        for tag in set(handed) - set(self._ledger.slices.owners(handed) if handed else ()):
            device.revoke(handed[tag], tag=tag, epoch=self._ledger.epoch)

    def _clean(self, uuid: str, indexes: Sequence[int]) -> None:
        device = self._devices.get(uuid)
        done: list[int] = []
        failed: dict[int, PondError] = {}
        kept = self._revoke(device, indexes)
        kept |= self._mapped(device, [index for index in indexes if index not in kept])
        for index in indexes:
            try:
                if index in kept:
                    raise kept[index]
                self._zero(device, index)
                done.append(index)
            except StaleEpoch:
                raise
            except InUse as error:
                LOG.warning("Sanitising of slice %d of pool %s waits: %s", index, uuid, error)
            except PondError as error:
                device.info()  # a device that does not answer at all raises here: its slices go on waiting
                failed[index] = error
        if done:
            self._ledger.slices.sanitized(uuid, done)
        for index, why in failed.items():
            LOG.error("Slice %d of pool %s is quarantined: %s", index, uuid, why)
            self._ledger.slices.quarantine(uuid, [index], Cause.SANITIZE_FAILED, str(why))
        self._changed()

    @staticmethod
    def _mapped(device: PoolDevice, indexes: Sequence[int]) -> dict[int, InUse]:
        """Return the slices that somebody uses without a permission: whatever released them, they are not zeroed."""
        try:
            device.check_unmapped(indexes)
        except InUse:
            pass
        else:
            return {}
        kept: dict[int, InUse] = {}
        for index in indexes:
            try:
                device.check_unmapped([index])
            except InUse as error:
                kept[index] = error
        return kept

    def _zero(self, device: PoolDevice, index: int) -> None:
        try:
            device.sanitize(index, epoch=self._ledger.epoch)
        except PermissionHeld:
            # Somebody granted it between our look at the table and now; the ledger says that nobody owns it.
            kept = self._revoke(device, [index])
            if kept:
                raise kept[index] from None
            device.sanitize(index, epoch=self._ledger.epoch)

    def _revoke(self, device: PoolDevice, indexes: Sequence[int]) -> dict[int, InUse]:
        """Revoke what is left of former owners' permissions; the ledger has confirmed that they are former.

        Returns the slices that a host keeps, on a device that must ask it: they wait for the next round.
        """
        table = device.permissions()
        tags: dict[str, list[int]] = {}
        for index in indexes:
            entry = table.get(index)
            if entry is not None:
                tags.setdefault(entry.tag, []).append(index)
            if entry is not None and entry.heir is not None:  # it has the permission once its holder's has ended
                tags.setdefault(entry.heir.tag, []).append(index)
        kept: dict[int, InUse] = {}
        for tag, mine in tags.items():
            try:
                device.revoke(mine, tag=tag, epoch=self._ledger.epoch)
            except InUse as error:
                left = device.permissions()
                kept.update({index: error for index in mine if index in left and left[index].tag == tag})
        return kept
