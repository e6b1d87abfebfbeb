"""All the agents of a rack in memory, behind AgentAPI's calls: for tests of whatever calls agents."""

import itertools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import oslo_messaging

from pondstack.domain.errors import Conflict, HostUnusable, OperationMismatch
from pondstack.domain.model import Extent
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.rpc.wire import Attachment, Backing


class FakeAgents:
    """`held`: what is attached, by (host, consumer). `log`: each call as "verb host". `down`: hosts that are silent.

    `faults`: errors to raise, once each, by verb. `backing`: makes the backing of an extent on a host.
    """

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], Attachment] = {}
        self.log: list[str] = []
        self.attaches: list[dict[str, object]] = []
        self.down: set[str] = set()
        self.faults: dict[str, list[Exception]] = {}
        self.unreached: set[tuple[str, str]] = set()
        self.shape: tuple[int, ...] | None = None
        self.backing: Callable[[str, Extent], Backing] = file_backing
        self._operations: dict[str, tuple[object, ...]] = {}
        self._starts = itertools.count(0, 100)

    def attach(
        self,
        host: str,
        *,
        operation_id: str,
        consumer_uuid: str,
        pool_uuid: str,
        pool_mib: int,
        guest_mib: int,
        project_id: str = "",
        user_id: str = "",
        shape: Sequence[int] | None = None,
    ) -> Attachment:
        """Attach, idempotent by operation id; refuses a second attachment of one consumer on one host."""
        self._called("attach", host)
        wish = {
            "host": host,
            "operation_id": operation_id,
            "consumer_uuid": consumer_uuid,
            "pool_uuid": pool_uuid,
            "pool_mib": pool_mib,
            "guest_mib": guest_mib,
            "project_id": project_id,
            "user_id": user_id,
            "shape": tuple(shape) if shape else None,
        }
        self.attaches.append(wish)
        if self._operations.setdefault(operation_id, tuple(wish.values())) != tuple(wish.values()):
            raise OperationMismatch(f"operation {operation_id} was used for something else; make a new id")
        self._faulty("attach")
        if (host, pool_uuid) in self.unreached:
            raise HostUnusable(f"host {host} does not reach pool {pool_uuid}; check its device")
        key = (host, consumer_uuid)
        if key not in self.held:
            self.held[key] = self._make(host, consumer_uuid, pool_uuid, pool_mib, shape)
        elif self.held[key].pool_uuid != pool_uuid or self.held[key].pool_mib != pool_mib:
            raise Conflict(f"{consumer_uuid} holds something else on {host} already; detach it first")
        return self.held[key]

    def detach(self, host: str, *, operation_id: str, consumer_uuid: str) -> bool:
        """Release; True when there was something."""
        del operation_id
        self._called("detach", host)
        self._faulty("detach")
        return self.held.pop((host, consumer_uuid), None) is not None

    def get_attachment(self, host: str, *, consumer_uuid: str) -> Attachment | None:
        """Return what a consumer holds on a host."""
        self._called("get", host)
        self._faulty("get")
        return self.held.get((host, consumer_uuid))

    def hosts_of(self, consumer_uuid: str) -> dict[str, int]:
        """Return where a consumer holds how many MiB."""
        return {host: held.pool_mib for (host, consumer), held in self.held.items() if consumer == consumer_uuid}

    def lose(self, host: str) -> None:
        """Forget what is attached on a host."""
        self.held = {key: held for key, held in self.held.items() if key[0] != host}

    def _make(
        self, host: str, consumer_uuid: str, pool_uuid: str, pool_mib: int, shape: Sequence[int] | None
    ) -> Attachment:
        counts = shape or self.shape or (pool_mib // DEFAULT_SLICE_MIB,)
        extents = tuple(Extent(next(self._starts), count) for count in counts)
        return Attachment(
            allocation_uuid=str(uuid.uuid4()),
            consumer_uuid=consumer_uuid,
            pool_uuid=pool_uuid,
            pool_name="pool0",
            pool_mib=pool_mib,
            epoch=1,
            extents=extents,
            backings=tuple(self.backing(host, extent) for extent in extents),
        )

    def _called(self, verb: str, host: str) -> None:
        self.log.append(f"{verb} {host}")
        if host in self.down:
            raise oslo_messaging.MessagingTimeout(f"no heartbeat of {host}")

    def _faulty(self, verb: str) -> None:
        if self.faults.get(verb):
            raise self.faults[verb].pop(0)


def file_backing(_host: str, extent: Extent) -> Backing:
    """Back an extent as the emulated device does: a range of a shared file."""
    size_mib = extent.count * DEFAULT_SLICE_MIB
    return Backing("file", size_mib, path="/pool/memory", offset_bytes=extent.start * DEFAULT_SLICE_MIB * 1024 * 1024)


def node_backing(nodes: dict[str, int]) -> Callable[[str, Extent], Backing]:
    """Back extents as CXL does: by a NUMA node of the host, `nodes[host]`."""

    def make(host: str, extent: Extent) -> Backing:
        return replace(file_backing(host, extent), kind="node", path="", offset_bytes=0, host_node=nodes[host])

    return make
