"""Which mappings of a QEMU process are which of its guest's nodes. Pure: the text of /proc/PID/maps in, ranges out.

A file-backed node is known by path and offset. Memory without a name is known by its size, and where sizes are equal by
the host nodes that it is bound to; what still looks alike is one group, whose sum is known and whose parts are not.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pondstack_agent.host.numa import parse_list
from pondstack_agent.telemetry.guests import Node

_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+) *(.*)")
DELETED = " (deleted)"

Policies = Mapping[int, frozenset[int]]
"""Start of a mapping to the host nodes that it is bound to."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A range of a process's addresses. `offset`: where in the file `path` (with `inode`) it begins, in bytes.

    `name`: its first mapping as /proc/PID/map_files calls it.
    """

    start: int
    end: int
    name: str = ""
    shared: bool = False
    offset: int = 0
    inode: int = 0
    path: str = ""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of a guest, mostly one, and their ranges, one for each node. `reason`: why it has no ranges."""

    nodes: tuple[Node, ...]
    ranges: tuple[Mapped, ...] = ()
    reason: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of all its nodes."""
        return sum(node.size_bytes for node in self.nodes)


def parse_maps(text: str) -> list[Mapped]:
    """Return the ranges that a process may write to; adjacent pieces of one mapping are one range."""
    found: list[Mapped] = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or not match[3].startswith("rw"):
            continue
        item = Mapped(
            start=int(match[1], 16),
            end=int(match[2], 16),
            name=f"{match[1]}-{match[2]}",
            shared=match[3][3] == "s",
            offset=int(match[4], 16),
            inode=int(match[6]),
            path=match[7],
        )
        last = found[-1] if found else None
        if last is not None and item.inode and _goes_on(last, item):
            found[-1] = replace(last, end=item.end)
        else:
            found.append(item)
    return found


def _goes_on(before: Mapped, after: Mapped) -> bool:
    same = (before.inode, before.path, before.shared) == (after.inode, after.path, after.shared)
    return same and before.end == after.start and (not after.inode or before.offset + before.size == after.offset)


def parse_policies(text: str) -> dict[int, frozenset[int]]:
    """Return the bound ranges of /proc/PID/numa_maps."""
    found = {}
    for line in text.splitlines():
        start, policy = line.split(" ", 2)[:2]
        mode, _, nodes = policy.rpartition(":")
        if mode.startswith("bind"):
            found[int(start, 16)] = frozenset(parse_list(nodes))
    return found


def match(nodes: Sequence[Node], mapped: Sequence[Mapped], policies: Callable[[], Policies]) -> list[Group]:
    """Return each node in one group. `policies` is called when sizes alone do not tell: it costs a page table walk."""
    groups = []
    alike: defaultdict[tuple[bool, int], list[Node]] = defaultdict(list)
    for node in nodes:
        if node.path:
            groups.append(_of_file(node, mapped))
        else:
            alike[node.shared, node.size_bytes].append(node)
    for (shared, size), peers in alike.items():
        groups += _of_size(peers, _candidates(mapped, shared, size), policies)
    return sorted(groups, key=lambda group: group.nodes[0].number)


def _of_file(node: Node, mapped: Sequence[Mapped]) -> Group:
    end = node.offset_bytes + node.size_bytes
    for item in mapped:
        path = item.path.removesuffix(DELETED)
        # A folder as mem-path: QEMU makes a file of its own in it and unlinks it.
        mine = path == node.path or path.startswith(f"{node.path.rstrip('/')}/qemu_back_mem.")
        if mine and item.offset <= node.offset_bytes and end <= item.offset + item.size:
            start = item.start + node.offset_bytes - item.offset
            cut = replace(item, start=start, end=start + node.size_bytes, offset=node.offset_bytes)
            return Group((node,), (cut,))
    return Group((node,), reason=f"the process does not map bytes {node.offset_bytes} to {end} of {node.path}")


def _candidates(mapped: Sequence[Mapped], shared: bool, size: int) -> list[Mapped]:
    """Return the ranges without a name of a user's that have this size."""

    def nameless(item: Mapped) -> bool:
        if not shared:
            return not item.shared and (item.path.startswith("/memfd:") or not (item.inode or item.path))
        return item.shared and item.path.startswith(("/memfd:", "/dev/zero")) and item.offset == 0

    mine = [item for item in mapped if nameless(item)]
    exact = [item for item in mine if item.size == size]
    return exact or [item for item in _joined(mine) if item.size == size]


def _joined(items: Sequence[Mapped]) -> list[Mapped]:
    found: list[Mapped] = []
    for item in items:
        if found and _goes_on(found[-1], item):
            found[-1] = replace(found[-1], end=item.end)
        else:
            found.append(item)
    return found


def _of_size(peers: Sequence[Node], candidates: Sequence[Mapped], policies: Callable[[], Policies]) -> list[Group]:
    mib = peers[0].size_bytes // 2**20
    if not candidates:
        return [Group((node,), reason=f"the process has no mapping of {mib} MiB that could be it") for node in peers]
    if len(peers) == len(candidates) == 1:
        return [Group(tuple(peers), tuple(candidates))]
    bound = policies()
    groups, left = [], list(candidates)
    by_policy: defaultdict[frozenset[int], list[Node]] = defaultdict(list)
    for node in peers:
        by_policy[node.host_nodes].append(node)
    for host_nodes, same in by_policy.items():
        mine = [item for item in left if bound.get(item.start, frozenset()) == host_nodes]
        if len(mine) == len(same):
            groups.append(Group(tuple(same), tuple(mine)))
            left = [item for item in left if item not in mine]
            peers = [node for node in peers if node not in same]
    if peers and len(peers) == len(left):
        groups.append(Group(tuple(peers), tuple(left)))
        peers = []
    reason = f"the process has {len(left)} mappings of {mib} MiB, and which of them it is cannot be told"
    return groups + [Group((node,), reason=reason) for node in peers]
