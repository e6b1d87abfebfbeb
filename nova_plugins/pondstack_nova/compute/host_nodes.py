"""Which NUMA nodes of a host are its own DRAM (they have CPUs) and which are onlined pool memory (they have none).

The kernel is asked, not libvirt: libvirtd knows the nodes that were there when it started, and slices come and go.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from nova.virt import hardware

NODES = Path("/sys/devices/system/node")
KIB_PER_MIB = 1024
_TOTAL = re.compile(r"MemTotal:\s*(\d+) kB")


@dataclass(frozen=True, slots=True)
class HostNodes:
    """Node numbers of a host, and the MiB of its own nodes."""

    local: frozenset[int]
    pool: frozenset[int]
    local_mib: int


def read(nodes: Path = NODES) -> HostNodes:
    """Read which nodes have memory now; none, where the kernel knows no nodes."""
    if not nodes.is_dir():
        return HostNodes(frozenset(), frozenset(), 0)
    memory, cpus = (hardware.parse_cpu_spec((nodes / name).read_text()) for name in ("has_memory", "has_cpu"))
    # Nodes with CPUs do not come and go while this reads.
    totals = [_TOTAL.findall((nodes / f"node{number}" / "meminfo").read_text()) for number in memory & cpus]
    local_mib = sum(int(kib) for found in totals for kib in found) // KIB_PER_MIB
    return HostNodes(frozenset(memory & cpus), frozenset(memory - cpus), local_mib)
