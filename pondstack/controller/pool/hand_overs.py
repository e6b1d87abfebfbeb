"""Hand-overs of slices to the host that their guest moves to: whether they may be, and the device's part in them.

An agent that names a source asks for memory of a running guest of another host. Nova claims the destination for a
server before it calls the destination's nova-compute (nova.conductor.tasks), and nobody but Nova does: without that
claim, on the pool and on the host, any compute host could read the memory of any guest.
"""

from collections.abc import Mapping
from typing import Any

from oslo_log import log

from pondstack.clients.placement import Placement
from pondstack.controller.pool.devices import DeviceRegistry
from pondstack.db.read.reader import SqlReader
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.requests import AssignRequest
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.ledger.moves import HEIRS

LOG = log.getLogger(__name__)


class HandOvers:
    """Says which moves take slices along. `placement` None: nobody claims anything, and nothing is handed over."""

    def __init__(self, devices: DeviceRegistry, reader: SqlReader, placement: Placement | None) -> None:
        self._devices, self._reader, self._placement = devices, reader, placement

    def allowed(self, request: AssignRequest) -> bool:
        """Return whether slices may be handed over for a request, as far as device and claims go; raises Unavailable.

        Not while a controller, or a host that reads the device's table, is of a release without heirs: it would take
        the table for damaged, or the slices for free. What is not allowed is no error: the slices are taken anew, and
        their content is copied.
        """
        pool_uuid = request.pool_uuid
        if not request.source or self._placement is None or pool_uuid not in self._devices.uuids():
            return False
        if not self._devices.get(pool_uuid).hands_over:
            return False
        if strangers := self._reader.heirs_strangers(pool_uuid):
            LOG.info("Pool memory of %s is copied: %s know no heirs", request.consumer_uuid, ", ".join(strangers))
            return False
        provider = self._placement.provider_by_name(request.host)
        held = self._placement.held_by(request.consumer_uuid)
        return provider in held and held.get(pool_uuid, {}).get(RESOURCE_CLASS, 0) >= request.pool_mib

    def let_in(self, effect: Mapping[str, Any], host: str, extents: tuple[Extent, ...], *, epoch: int) -> None:
        """Have the device let an heir in by the effect of its assignment; raises as PoolDevice.add_heir.

        The ledger has one heir for each allocation: another one that the device still has is none any more.
        """
        device, indexes = self._devices.get(effect["pool_uuid"]), indexes_of(extents)
        ((owner, uuid),) = effect[HEIRS].items()
        entries = [entry for index, entry in device.permissions().items() if index in indexes and entry.tag == owner]
        for tag in sorted({entry.heir.tag for entry in entries if entry.heir is not None} - {uuid}):
            device.revoke(indexes, tag=tag, epoch=epoch)
        device.add_heir(host, extents, tag=uuid, owner=owner, epoch=epoch)
