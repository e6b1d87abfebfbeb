"""Memory blocks of the host: which range they are, their state and zone, online and offline. Read back each time."""

import time
from collections.abc import Callable, Iterable, Sequence

from oslo_log import log

from pondstack.domain.errors import DeviceFailed
from pondstack.domain.units import MIB
from pondstack_agent.drivers.cxl import privileged
from pondstack_agent.drivers.cxl.preflight import Failure, failed
from pondstack_agent.drivers.cxl.sysfs import Sysfs

LOG = log.getLogger(__name__)

MEMORY = "devices/system/memory"
NODES = "devices/system/node"
MOVABLE = "Movable"
_PAUSE_SECONDS = 0.2
_REMOTE_DISTANCE = 20


class StuckOnline(DeviceFailed):
    """Memory that did not go offline within its bound; what is left of it is still in use."""


class Blocks:
    """Memory blocks, as paths in sysfs."""

    def __init__(self, sysfs: Sysfs, wait: Callable[[float], None] = time.sleep) -> None:
        self._sysfs, self._wait = sysfs, wait

    @property
    def size_bytes(self) -> int:
        """What the kernel brings online and offline at once."""
        return self._sysfs.hexadecimal(f"{MEMORY}/block_size_bytes")

    def policy(self) -> str:
        """Return what the kernel does with new memory: offline, online..."""
        return self._sysfs.text(f"{MEMORY}/auto_online_blocks")

    def of(self, start: int, size_bytes: int) -> list[str]:
        """Return the blocks of a range of physical addresses, those that exist."""
        block = self.size_bytes
        paths = [f"{MEMORY}/memory{n}" for n in range(start // block, (start + size_bytes) // block)]
        return [path for path in paths if self._sysfs.exists(path)]

    def is_online(self, block: str) -> bool:
        """Tell whether the kernel uses a block; one that is going offline counts."""
        return self._sysfs.text(f"{block}/state") != "offline"

    def online(self, blocks: Iterable[str], device: str, node: int) -> None:
        """Bring blocks online as movable memory of a node; raises HostUnusable, DeviceFailed."""
        for block in blocks:
            if not self.is_online(block):
                self._sysfs.write(f"{block}/state", "online_movable")
            name = block.rpartition("/")[2]
            zone = self._sysfs.text(f"{block}/valid_zones")
            if zone != MOVABLE:
                raise failed(Failure.ZONE_NORMAL, block=name, device=device, zone=zone)
            if not self._sysfs.exists(f"{block}/node{node}"):
                raise DeviceFailed(f"{name} of {device} is not in node {node}; look at the kernel's log")
            if self._sysfs.text(f"{block}/state") != "online":
                raise DeviceFailed(f"{name} of {device} did not come online; look at the kernel's log")

    def offline(self, blocks: Sequence[str], what: str, *, attempts: int, seconds: float) -> None:
        """Take blocks offline while the kernel moves away what is in them; raises StuckOnline after the last attempt.

        `seconds` bounds one attempt, in which the kernel itself tries again and again.
        """
        trouble = ""
        for attempt in range(1, attempts + 1):
            left = [block for block in blocks if self.is_online(block)]
            if not left:
                return
            _, trouble = privileged.offline_blocks([f"{self._sysfs.root}/{block}" for block in left], seconds)
            left = [block for block in left if self.is_online(block)]
            done = len(blocks) - len(left)
            LOG.info("%s: %d of %d memory blocks are offline, attempt %d", what, done, len(blocks), attempt)
            if left and attempt < attempts:
                self._wait(_PAUSE_SECONDS * attempt)
        left = [block.rpartition("/")[2] for block in blocks if self.is_online(block)]
        if left:
            raise StuckOnline(
                f"{what} does not go offline: {len(left)} of {len(blocks)} memory blocks ({', '.join(left[:4])}) are "
                f"still in use after {attempts} attempts ({trouble}); find who has pages there (numa_maps of /proc, "
                "pinned memory of VFIO or RDMA), end it and detach again, or drain and reboot the host"
            )

    def node(self, node: int, device: str) -> int:
        """Return the number of a node that may be used for pool memory; raises HostUnusable."""
        if node < 0 or node in self._sysfs.cpus(f"{NODES}/has_cpu"):
            raise failed(Failure.NODE_WITH_CPUS, device=device, node=node)
        return node

    def online_mib(self, node: int) -> int:
        """Return how much memory of a node is online to stay: what goes offline is for nobody any more."""
        folder = f"{NODES}/node{node}"
        blocks = [name for name in self._sysfs.names(folder) if name.removeprefix("memory").isdigit()]
        return sum(self._sysfs.text(f"{folder}/{name}/state") == "online" for name in blocks) * self.size_bytes // MIB

    def distance_of_device(self, node: int) -> int:
        """Return the SLIT distance of memory that need not be online; the kernel tells it of online nodes only.

        Without it, what the kernel takes for any node of which the firmware says nothing (REMOTE_DISTANCE,
        include/linux/topology.h).
        """
        return self.distance(node) if node in self._sysfs.cpus(f"{NODES}/online") else _REMOTE_DISTANCE

    def distance(self, node: int) -> int:
        """Return the SLIT distance of an online node from the nearest CPUs."""
        order = sorted(self._sysfs.cpus(f"{NODES}/online"))
        if node not in order:
            raise DeviceFailed(f"node {node} has no memory online; attach again")
        rows = (
            self._sysfs.text(f"{NODES}/node{near}/distance").split() for near in self._sysfs.cpus(f"{NODES}/has_cpu")
        )
        return min(int(row[order.index(node)]) for row in rows)
