"""Memory of the host by node: how much is free, and what mitigations in progress have reserved of the local one."""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pondstack.domain.errors import HostUnusable
from pondstack_agent.host.numa import PAGE_KIB, parse_list
from pondstack_agent.host.watermarks import kept_pages
from pondstack_agent.mitigation import plan

NODES = Path("/sys/devices/system/node")
ZONES = Path("/proc/zoneinfo")


class HostNodes:
    """The nodes of the host as its kernel has them."""

    def __init__(self, root: Path = NODES, zones: Path = ZONES) -> None:
        self._root, self._zones = root, zones

    def with_cpus(self) -> set[int]:
        """Return the nodes whose memory is local."""
        return parse_list(self._text("has_cpu"))

    def free_mib(self) -> dict[int, int]:
        """Return by local node what can be had without waiting for a disk: free, and clean file pages long unused."""
        return {node: self._free_mib(node) for node in self.with_cpus()}

    def kept_pages(self, node: int) -> int:
        """Return how many pages of a node the kernel keeps for itself."""
        return kept_pages(self._zones.read_text(), node)

    def spare_pages(self, node: int) -> int:
        """Return how many free pages of a node there are beside those that the kernel keeps; raises HostUnusable."""
        return max(self._meminfo_kib(node)["MemFree"] // PAGE_KIB - self.kept_pages(node), 0)

    def _meminfo_kib(self, node: int) -> dict[str, int]:
        found = re.findall(r"(\S+):\s+(\d+) kB", self._text(f"node{node}/meminfo"))
        return {name: int(value) for name, value in found}

    def _free_mib(self, node: int) -> int:
        kib = self._meminfo_kib(node)
        dirty = kib.get("Dirty", 0) + kib.get("Writeback", 0)
        return (kib["MemFree"] + max(kib.get("Inactive(file)", 0) - dirty, 0)) >> 10

    def _text(self, name: str) -> str:
        try:
            return (self._root / name).read_text()
        except OSError as error:
            raise HostUnusable(
                f"cannot read {self._root / name} ({error.strerror}); does the kernel have NUMA?"
            ) from None


class LocalRoom:
    """Reservations. One keeps its whole size until it is given back: pages that moved count twice, never not at all."""

    def __init__(self, free_mib: Callable[[], Mapping[int, int]], headroom_mib: int) -> None:
        self._free_mib, self._headroom_mib = free_mib, headroom_mib
        self._lock = threading.Lock()
        self._reserved: dict[str, int] = {}

    def reserve(self, name: str, mib: int, nodes: Iterable[int]) -> None:
        """Reserve room on local nodes before any page moves; raises NoLocalRoom."""
        with self._lock:
            free = self._free_mib()
            others = sum(size for key, size in self._reserved.items() if key != name)
            plan.check_room(mib, {node: free.get(node, 0) for node in nodes}, others, self._headroom_mib)
            self._reserved[name] = mib

    @property
    def reserved_mib(self) -> int:
        """What is reserved now, in all."""
        with self._lock:
            return sum(self._reserved.values())

    def give_back(self, name: str) -> None:
        """Drop a reservation; what moved is used by now, and the kernel counts it."""
        with self._lock:
            self._reserved.pop(name, None)
