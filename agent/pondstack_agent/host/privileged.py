"""Who uses which memory of the host, as only root can tell, by oslo.privsep. It reads, and changes nothing."""

from collections.abc import Sequence
from pathlib import Path

from oslo_privsep import capabilities

from pondstack.devices import mappings
from pondstack_agent.host import libvirt_status, node_pages
from pondstack_agent.privilege.context import Context

# What processes of other users map. Files of libvirt's are root's, who needs nothing for them.
context = Context("host", __name__, [capabilities.CAP_SYS_PTRACE])

_PROC = Path("/proc")


@context.entrypoint
def domains() -> dict[str, int]:
    """Return the guests that libvirt says run: instance UUID to process id."""
    return libvirt_status.domains()


@context.entrypoint
def pages_on_node(node: int) -> dict[int, int]:
    """Return how many pages each process has on a node: process id to pages."""
    return node_pages.by_process(int(node), _PROC)


@context.entrypoint
def mapped_ranges(files: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return, for each file (device number, inode), which bytes of it any process maps: first, and after the last."""
    wanted = [(int(device), int(inode)) for device, inode in files]
    found = mappings.mapped_ranges(wanted)
    return [[(item.start, item.stop) for item in found[file]] for file in wanted]


@context.entrypoint
def is_mapped(device: str) -> bool:
    """Tell whether any process maps a device by this path."""
    return mappings.is_mapped(str(device))
