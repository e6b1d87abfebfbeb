"""Untouched memory of one guest, by node and as a whole, from outside (Pond 4.2). No made-up figure: else a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pondstack_agent.telemetry import guest_process, pagemap
from pondstack_agent.telemetry.guests import Node, nodes_of
from pondstack_agent.telemetry.mappings import Group, Mapped, match, parse_maps, parse_policies

HUGETLB_BYTES = 2**20
"""File systems with blocks of this size and more are hugetlbfs."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Memory of nodes in bytes. `touched_bytes` None: not available, for `reason`; `huge_bytes` None: not known."""

    nodes: tuple[int, ...]
    size_bytes: int
    touched_bytes: int | None = None
    huge_bytes: int | None = None
    reason: str = ""


def groups(pid: int, proc: Path = pagemap.PROC) -> list[Group]:
    """Return where the nodes of a guest are in its process; [] when it is none of QEMU's. Raises OSError."""
    nodes = nodes_of((proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0"))
    if not nodes:
        return []
    mapped = parse_maps(guest_process.text(pid, "maps", proc))
    return match(nodes, mapped, lambda: parse_policies(guest_process.text(pid, "numa_maps", proc)))


def measure(pid: int, found: Sequence[Group], proc: Path = pagemap.PROC) -> list[Figure]:
    """Return a figure for each group; raises OSError, mostly because the process has ended."""
    return [_figure(pid, group, proc) for group in found]


def whole(figures: Sequence[Figure]) -> Figure:
    """Return the sum over a guest's nodes; one that is not available makes the sum not available."""
    nodes = tuple(number for figure in figures for number in figure.nodes)
    size = sum(figure.size_bytes for figure in figures)
    for figure in figures:
        if figure.touched_bytes is None:
            return Figure(nodes, size, reason=f"node {_names(figure.nodes)}: {figure.reason}")
    huge = [figure.huge_bytes for figure in figures]
    known = sum(item for item in huge if item is not None) if None not in huge else None
    return Figure(nodes, size, sum(figure.touched_bytes or 0 for figure in figures), known)


def _names(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))


def _figure(pid: int, group: Group, proc: Path) -> Figure:
    numbers = tuple(node.number for node in group.nodes)
    reason = group.reason or _unknowable(group.nodes)
    touched = 0
    huge: int | None = 0
    for item in () if reason else group.ranges:
        reason = reason or _huge_file(pid, item, proc)
        if reason:
            break
        found = _touched(pid, item, proc)
        touched += found.touched_bytes
        huge = None if huge is None or found.huge_bytes is None else huge + found.huge_bytes
    if reason:
        return Figure(numbers, group.size_bytes, reason=reason)
    return Figure(numbers, group.size_bytes, touched, huge)


def _unknowable(nodes: Sequence[Node]) -> str:
    return next((node.unknowable for node in nodes if node.unknowable), "")


def _huge_file(pid: int, item: Mapped, proc: Path) -> str:
    if not item.inode:
        return ""
    block = guest_process.block_bytes(pid, item.name, proc)
    return f"in huge pages of {block // 2**20} MiB that are reserved as a whole" if block >= HUGETLB_BYTES else ""


def _touched(pid: int, item: Mapped, proc: Path) -> pagemap.Present:
    present = guest_process.present(pid, item.start, item.end, proc)
    if not (item.shared and item.inode):
        return present
    # Pages of a file can leave the page tables and be there still (swapped out, written back), or have been touched
    # by another process on the guest's behalf (vhost-user): then the file knows of more than the page tables.
    stored = guest_process.allocated_bytes(pid, item.name, item.offset, item.offset + item.size, proc)
    return pagemap.Present(max(present.touched_bytes, stored), present.huge_bytes)
