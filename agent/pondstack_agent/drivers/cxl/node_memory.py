"""Slices as memory of a node of this host without CPUs: the kernel hands its pages out (driver kmem)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from oslo_log import log

from pondstack.domain.backing import NODE
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent, indexes_of
from pondstack.domain.purpose import Purpose
from pondstack.domain.units import MIB
from pondstack.rpc.wire import Backing, Grant
from pondstack_agent.drivers.cxl import amount, partition_check
from pondstack_agent.drivers.cxl.allocations import Allocations
from pondstack_agent.drivers.cxl.dax import DaxDevice, FirstUse, Slices
from pondstack_agent.drivers.cxl.memory import Blocks
from pondstack_agent.drivers.cxl.slice_backing import SliceBacking
from pondstack_agent.drivers.grant_records import extents_in
from pondstack_agent.partition import Partition

LOG = log.getLogger(__name__)


class NodeMemory(SliceBacking):
    """One dax device for each slice. `make`: whether the agent makes the partition itself."""

    kind = NODE

    def __init__(self, blocks: Blocks, allocations: Allocations, partition: Partition, *, make: bool) -> None:
        self._blocks, self._allocations, self._partition, self._make = blocks, allocations, partition, make

    def prepare(self, grant: Grant) -> None:
        """Keep everybody but guests of the node off it."""
        if grant.purpose != Purpose.TIER:  # a tier's node is for everybody on this host
            holders = self._allocations.consumers(NODE) | {grant.consumer_uuid}
            partition_check.ensure(self._partition, holders, make=self._make)

    def spans(self, grant: Grant) -> Sequence[Extent]:
        """Return the slices: each one goes offline for itself."""
        return [Extent(index, 1) for index in indexes_of(grant.extents)]

    def check(self, slices: Slices, grant: Grant, slice_bytes: int) -> None:
        """Look at the kernel's policy and sizes, too."""
        slices.check_memory(slice_bytes)
        super().check(slices, grant, slice_bytes)

    def up(
        self,
        slices: Slices,
        span: Extent,
        slice_bytes: int,
        *,
        first_use: FirstUse | None,
        dirty: Callable[[], None],
    ) -> DaxDevice:
        """Bring a slice online."""
        return slices.up(span.start, slice_bytes, first_use=first_use, dirty=dirty)

    def complete(self, slices: Slices, record: Mapping[str, Any], device: DaxDevice, to_come: Collection[str]) -> None:
        """Look whether guests get no more of the node than is online of it, for this record too."""
        node, held = slices.node(device), self._allocations.held(record, but=to_come)
        amount.check_node(node, amount.by_allocation(held), self._blocks.online_mib(node))
        for consumer in self._partition.unbound_holders({record["consumer_uuid"]: node for record in held}):
            LOG.warning("Guest %s was started before the partition: its own memory may take pool memory", consumer)

    def backings(self, slices: Slices, record: Mapping[str, Any]) -> tuple[Backing, ...]:
        """Return the node for each extent."""
        by_index, found = slices.by_index(record["slice_mib"] * MIB), []
        for extent in extents_in(record):
            devices = [by_index[i] for i in extent.indexes if i in by_index]
            if len(devices) < extent.count or not all(slices.is_online(item) for item in devices):
                tag = record["allocation_uuid"]
                raise DeviceFailed(f"allocation {tag} is not all online; detach it and attach anew")
            node = slices.node(devices[0])
            size, distance = extent.count * record["slice_mib"], self._blocks.distance(node)
            found.append(Backing(kind=NODE, size_mib=size, distance=distance, host_node=node))
        return tuple(found)
