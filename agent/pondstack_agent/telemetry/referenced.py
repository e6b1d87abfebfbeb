"""Which memory of a process was used since the last scan: the accessed bits of its page tables, read and cleared.

/proc/PID/smaps counts pages that were referenced, mapping by mapping, and `1` to /proc/PID/clear_refs clears their bits
(Documentation/filesystems/proc.rst). Nothing is attached to the process. The price: the kernel's own reclaim finds the
bits cleared, too. Guests under KVM are watched otherwise (pondstack_agent.telemetry.damon): they go by page tables of
their own (EPT, NPT), whose bits clear_refs leaves alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pondstack_agent.host import smaps
from pondstack_agent.telemetry import guest_process
from pondstack_agent.telemetry.mappings import Mapped
from pondstack_agent.telemetry.pagemap import PROC

KIB = 1024
_PAGE_KIB = 64
"""Pages of mappings are no larger, huge pages apart, on any architecture."""

HUGE = "in huge pages, which the kernel does not count here"
CUT = "its mapping has other memory in it"


@dataclass(frozen=True, slots=True)
class Used:
    """Memory of one range in bytes: used since the scan before, and there but not used. `reason`: why not known."""

    hot_bytes: int = 0
    cold_bytes: int = 0
    reason: str = ""


def scan(pid: int, ranges: Sequence[Mapped], proc: Path = PROC) -> list[Used]:
    """Return what was used of each range since the scan before, and begin anew; raises OSError."""
    text = guest_process.text(pid, "smaps", proc)
    clear(pid, proc)
    found = [Used() for _ in ranges]
    for header, fields in smaps.blocks(text):
        start, end = int(header[1], 16), int(header[2], 16)
        for index, item in enumerate(ranges):
            if start < item.end and item.start < end:
                found[index] = _add(found[index], item, start, end, fields)
    return found


def clear(pid: int, proc: Path = PROC) -> None:
    """Begin anew; raises OSError."""
    guest_process.clear_refs(pid, proc)


def _add(used: Used, item: Mapped, start: int, end: int, fields: dict[str, int]) -> Used:
    if used.reason:
        return used
    if start < item.start or end > item.end:
        return Used(reason=CUT)
    if fields.get("KernelPageSize", 0) > _PAGE_KIB:
        return Used(reason=HUGE)
    hot = fields.get("Referenced", 0) * KIB
    there = (fields.get("Rss", 0) + fields.get("Swap", 0)) * KIB
    return Used(used.hot_bytes + hot, used.cold_bytes + max(0, there - hot))
