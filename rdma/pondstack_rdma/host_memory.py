"""Whether this host has the memory for a region. A memfd has no limit of its own: without this, asking for too much is
answered by the kernel's OOM killer, which takes guests.
"""

from collections.abc import Callable
from pathlib import Path

from pondstack_rdma.errors import RegistrationFailed

RESERVE_SHARE = 16
"""One part in so many of a host's memory is never lent: the last guard. How much is lent is the agent's decision."""

Room = Callable[[], tuple[int, int]]
"""Returns the bytes that a host can still give, and all that it has."""

MEMINFO = Path("/proc/meminfo")


def host_room() -> tuple[int, int]:
    """Return what the kernel thinks is available without swapping, and the total; raises OSError, ValueError."""
    lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
    available, total = (int(lines[name].removesuffix("kB")) * 1024 for name in ("MemAvailable", "MemTotal"))
    return available, total


def check_room(size_bytes: int, available_bytes: int, total_bytes: int) -> None:
    """Raise RegistrationFailed when a host that gave `size_bytes` would have less than its reserve."""
    reserve = total_bytes // RESERVE_SHARE
    if size_bytes > available_bytes - reserve:
        raise RegistrationFailed(
            f"this host has {available_bytes} bytes of memory available, {reserve} of which are never lent: "
            f"{size_bytes} bytes are too much; lend less, see `free -b`"
        )
