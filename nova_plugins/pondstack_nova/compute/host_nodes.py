"""Which NUMA nodes of a host are its own DRAM (they have CPUs) and which are onlined pool memory (they have none)."""

from dataclasses import dataclass

from nova.virt.libvirt import config as vconfig

KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True)
class HostNodes:
    """Node numbers of a host, and the MiB of its pool nodes."""

    local: frozenset[int]
    pool: frozenset[int]
    pool_mib: int


def parse(capabilities_xml: str) -> HostNodes:
    """Read libvirt's host capabilities. Fresh ones: Nova's cached copy does not see slices that came online since."""
    capabilities = vconfig.LibvirtConfigCaps()
    capabilities.parse_str(capabilities_xml)
    topology = capabilities.host.topology if capabilities.host else None
    cells = topology.cells if topology else []
    pool = [cell for cell in cells if not cell.cpus]
    return HostNodes(
        local=frozenset(cell.id for cell in cells if cell.cpus),
        pool=frozenset(cell.id for cell in pool),
        pool_mib=sum(cell.memory for cell in pool) // KIB_PER_MIB,
    )
