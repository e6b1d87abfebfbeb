"""What running guests may still take of this host's memory: it is available now, and theirs."""

import contextlib
import re
from pathlib import Path

from pondstack.domain.units import MIB
from pondstack_agent.host.memory_users import PROC, guests
from pondstack_agent.telemetry.guests import nodes_of

_RESIDENT = re.compile(r"^(?:VmRSS|HugetlbPages):\s+(\d+) kB", re.MULTILINE)


def growth_mib(proc: Path = PROC) -> int:
    """Return what all guests have not touched yet, in MiB; a guest that ends meanwhile is left out.

    By their command lines and resident sizes: coarse, and on the safe side, as pool memory of a guest counts, too.
    """
    total = 0
    for pid in guests(proc).values():
        with contextlib.suppress(OSError):
            total += _missing_bytes(proc / str(pid))
    return -(-total // MIB)


def _missing_bytes(process: Path) -> int:
    words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    size = sum(node.size_bytes for node in nodes_of(words))
    resident = sum(int(kib) for kib in _RESIDENT.findall((process / "status").read_text())) * 1024
    return max(size - resident, 0)
