"""What a mitigation does, decided from what was seen; pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pondstack.domain.errors import HostUnusable, NoLocalRoom
from pondstack_agent.host.numa import Region

Chunk = tuple[range, ...]
"""Addresses of pages, a range for each mapping."""


def targets(allowed: Collection[int], with_cpus: Collection[int], pool_node: int) -> tuple[int, ...]:
    """Return the local nodes that a guest may use; raises HostUnusable when its cgroup allows none."""
    found = tuple(sorted((set(allowed) & set(with_cpus)) - {pool_node}))
    if not found:
        raise HostUnusable(
            f"the guest's cgroup allows the nodes {sorted(allowed)} only, none of which is local memory; widen its "
            "cpuset.mems and mitigate again"
        )
    return found


def check_room(need_mib: int, free_mib: Mapping[int, int], taken_mib: int, headroom_mib: int) -> None:
    """Raise NoLocalRoom unless `need_mib` fits beside what other mitigations reserved and what stays free."""
    free = sum(free_mib.values())
    left = free - taken_mib - headroom_mib
    if need_mib > left:
        raise NoLocalRoom(
            f"{need_mib} MiB of local memory are needed and {max(left, 0)} MiB are there ({free} MiB free, {taken_mib} "
            f"MiB reserved by other mitigations, {headroom_mib} MiB kept by [agent] mitigation_headroom_mib); migrate "
            "the guest to another host"
        )


def chunks(regions: Iterable[Region], node: int, chunk_mib: int) -> Iterator[Chunk]:
    """Return the addresses of mappings with pages on a node, in pieces of at most `chunk_mib`, which move at once."""
    return pieces((region for region in regions if region.pages.get(node)), chunk_mib)


def pieces(regions: Iterable[Region], chunk_mib: int) -> Iterator[Chunk]:
    """Return the addresses of mappings, in pieces of at most `chunk_mib`."""
    limit = chunk_mib << 20
    ranges: list[range] = []
    size = 0
    for region in regions:
        step, start = region.page_kib << 10, region.start
        while start < region.end:
            end = min(region.end, start + max((limit - size) // step, 1) * step)
            ranges.append(range(start, end, step))
            size += end - start
            start = end
            if size >= limit:
                yield tuple(ranges)
                ranges, size = [], 0
    if ranges:
        yield tuple(ranges)


def roomiest(nodes: Sequence[int], free_mib: Mapping[int, int]) -> int:
    """Return the node with the most room."""
    return max(nodes, key=lambda node: (free_mib.get(node, 0), -node))
