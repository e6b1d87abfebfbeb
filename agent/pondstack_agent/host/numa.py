"""Where the pages of a process lie and what its memory policies say: /proc/PID/maps and numa_maps, parsed."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

PAGE_KIB = 4
_HEAD = re.compile(r"[0-9a-f]+-([0-9a-f]+) .(\S)")
_POLICY = re.compile(r"^[0-9a-f]+ [a-z ()=|]+:([0-9,-]+)(?: |$)", re.M)
_PAGES = re.compile(r"N(\d+)=(\d+)")
_SIZE = re.compile(r"kernelpagesize_kB=(\d+)")


@dataclass(frozen=True, slots=True)
class Region:
    """One mapping: addresses from `start` to before `end`, nodes that its policy names, pages by node."""

    start: int
    end: int
    policy_nodes: frozenset[int] = frozenset()
    page_kib: int = PAGE_KIB
    pages: Mapping[int, int] = field(default_factory=dict)
    writable: bool = True

    def kib_on(self, node: int) -> int:
        """Return how much of it lies on a node."""
        return self.pages.get(node, 0) * self.page_kib


def parse(maps: str, numa_maps: str, node: int | None = None) -> list[Region]:
    """Return the mappings that both texts have; the process may map and unmap between the two looks.

    `node`: only mappings with pages there. A guest has hundreds of mappings and few of them on a given node.
    """
    heads = {line.partition("-")[0]: line for line in maps.splitlines()}
    found = []
    lines = numa_maps.splitlines()
    for line in lines if node is None else (line for line in lines if f" N{node}=" in line):
        address, *words = line.split()
        if head := _HEAD.match(heads.get(address, "")):
            pages = {int(match[1]): int(match[2]) for word in words if (match := _PAGES.fullmatch(word))}
            size = next((int(match[1]) for word in words if (match := _SIZE.fullmatch(word))), PAGE_KIB)
            policy = _POLICY.match(line)
            nodes = frozenset(parse_list(policy[1])) if policy else frozenset()
            found.append(Region(int(address, 16), int(head[1], 16), nodes, size, pages, head[2] == "w"))
    return found


def parse_list(text: str) -> set[int]:
    """Return the numbers of a list such as 0-3,8."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return {n for first, _, last in ranges for n in range(int(first), int(last or first) + 1)}


def pages_on(regions: Iterable[Region], node: int) -> int:
    """Return how many pages of 4 KiB lie on a node."""
    return sum(region.kib_on(node) for region in regions) // PAGE_KIB


def count(numa_maps: str, node: int) -> int:
    """Return how many pages of 4 KiB lie on a node, in whatever mapping, by numa_maps alone."""
    kib = 0
    for line in numa_maps.splitlines():
        if found := re.search(rf" N{node}=(\d+)", line):
            size = _SIZE.search(line)
            kib += int(found[1]) * (int(size[1]) if size else PAGE_KIB)
    return kib // PAGE_KIB


def uses(numa_maps: str, node: int, allowed: Collection[int] | None = None) -> bool:
    """Tell whether a process has pages on a node, or a policy that sends later faults there, by numa_maps alone.

    That text says it of every mapping. Beside maps, read before it, those would be missed that were split meanwhile.
    `allowed`: the nodes of its cpuset, None for any. The kernel rewrites a strict policy when that changes, and leaves
    one alone that only prefers a node, and that then has no effect.
    """
    open_to_it = allowed is None or node in allowed
    named = open_to_it and any(node in parse_list(policy) for policy in set(_POLICY.findall(numa_maps)))
    return named or f" N{node}=" in numa_maps
