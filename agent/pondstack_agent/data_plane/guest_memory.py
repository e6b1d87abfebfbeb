"""The process of a guest, and which of its mappings is its local node: what the data plane is to serve."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pondstack.domain.errors import BadRequest, Conflict
from pondstack.domain.units import MIB
from pondstack_agent.host.memory_users import PROC, guests, is_guest
from pondstack_agent.telemetry.guests import Node, nodes_of

MEMFD = "/memfd:memory-backend-memfd"
"""As the kernel names the mapping of a QEMU's memory backend without a file."""


@dataclass(frozen=True, slots=True)
class GuestMemory:
    """Node 0 of a guest. `started`: when its process began, in clock ticks since the host's start.

    `memory`: a part of the path of its mapping, by which the data plane finds it. `is_file`: QEMU has it as a file,
    which a migration can leave out.
    """

    pid: int
    started: int
    memory: str
    size_mib: int
    is_file: bool = False


FindMemory = Callable[..., GuestMemory]
"""Returns a guest's memory by its UUID, and by its process where there may be several (`pid=`).

Raises Conflict when no process runs, BadRequest when it cannot be served.
"""

ProcessStarted = Callable[[int], int | None]
"""Returns when a process began, None when it has ended."""


def find_memory(guest: str, proc: Path = PROC, *, pid: int | None = None) -> GuestMemory:
    """Return the memory of a guest that runs, or is paused; see FindMemory."""
    if pid is None:
        pid = guests(proc).get(guest)
    elif not is_guest(pid, proc):
        pid = None
    started = start_of(pid, proc) if pid is not None else None
    if pid is None or started is None:
        raise Conflict(f"guest {guest} has no process on this host; start it first")
    try:
        words = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError as error:
        raise Conflict(f"guest {guest} has ended meanwhile: {error}") from error
    node = next((found for found in nodes_of(words) if found.number == 0), None)
    if node is None:
        raise BadRequest(f"the command line of guest {guest} (process {pid}) says nothing of its memory")
    return GuestMemory(pid, started, _mapping(guest, node), node.size_bytes // MIB, node.is_file)


def start_of(pid: int, proc: Path = PROC) -> int | None:
    """Return when a process began, in clock ticks since the host's start; None when it has ended."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def _mapping(guest: str, node: Node) -> str:
    if not node.shared:
        raise BadRequest(
            f"the memory of guest {guest} is private: its domain needs a memoryBacking of the source memfd, shared"
        )
    if node.unknowable:
        raise BadRequest(f"the memory of guest {guest} cannot be kept elsewhere: it is {node.unknowable}")
    return os.path.normpath(node.path) if node.path else MEMFD
