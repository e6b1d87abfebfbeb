"""Moves a guest's pages: chunk by chunk; to local memory also for good, by its cgroup, and reads back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from oslo_log import log

from pondstack.domain.errors import InUse, NotFound
from pondstack_agent.host import numa
from pondstack_agent.host.numa import Region
from pondstack_agent.mitigation import plan, privileged
from pondstack_agent.mitigation.guest import Cgroup, Guest
from pondstack_agent.mitigation.room import HostNodes

LOG = log.getLogger(__name__)


class Aborted(Exception):
    """Somebody asked to stop."""


class Moved(NamedTuple):
    """What became of the pages of a chunk that were elsewhere; `trouble`: why some stayed."""

    moved: int = 0
    left: int = 0
    trouble: str = ""


class Mover:
    """`chunk_mib` is what moves between two looks at `aborted`. `step` is told before each change."""

    def __init__(self, nodes: HostNodes, chunk_mib: int, step: Callable[[str], None] = lambda _name: None) -> None:
        self._nodes, self._chunk_mib, self._step = nodes, chunk_mib, step

    def move(
        self,
        guest: Guest,
        cgroup: Cgroup,
        pool_node: int,
        targets: tuple[int, ...],
        regions: Sequence[Region],
        aborted: Callable[[], bool],
    ) -> None:
        """Move all; raises Aborted, NotFound when the guest ended, InUse when pages stay.

        `regions`: the guest's that have pages there, seen just now: a look walks all its page tables. It goes on and
        may touch new pages while others move, and some are busy: the cgroup gets the last of them. It gets the last
        chunk, too: it needs no look at the address of each page. Until that step the guest's policy is as before:
        whatever ends it earlier leaves a guest of the pool.
        """
        chunks = list(plan.chunks(regions, pool_node, self._chunk_mib))
        if len(targets) == 1:  # of several nodes the cgroup does not choose the roomiest
            chunks = chunks[:-1]
        for chunk in chunks:
            if aborted():
                raise Aborted
            self._chunk(guest, chunk, targets)
        if aborted():
            raise Aborted
        self._step("cgroup")
        cgroup.bind(targets)
        self.check(guest, pool_node)

    def check(self, guest: Guest, pool_node: int) -> None:
        """Raise InUse unless nothing of the guest is on the node and nothing will be; NotFound when it ended."""
        seen = guest.numa_maps()
        if not seen:
            raise NotFound(f"guest {guest.consumer_uuid} ended meanwhile; detach it")
        if guest.uses(seen, pool_node):
            raise InUse(
                f"{numa.count(seen, pool_node)} pages of guest {guest.consumer_uuid} stay on node {pool_node} "
                f"(see /proc/{guest.pid}/numa_maps); pages that a device uses (VFIO) cannot move: migrate the guest"
            )

    def pieces(self, regions: Iterable[Region]) -> Iterator[plan.Chunk]:
        """Return the addresses of mappings in chunks."""
        return plan.pieces(regions, self._chunk_mib)

    def gather(self, guest: Guest, chunk: plan.Chunk, node: int, at_most: int) -> Moved:
        """Move the few pages of a chunk that are elsewhere to a node, `at_most` so many."""
        self._step("chunk")
        moved = Moved(*privileged.gather_pages(guest.pid, _ranges(chunk), node, at_most))
        if moved.trouble:
            LOG.debug("Guest %s, pages to node %d: %s", guest.consumer_uuid, node, moved)
        return moved

    def _chunk(self, guest: Guest, chunk: plan.Chunk, targets: tuple[int, ...]) -> None:
        target = targets[0] if len(targets) == 1 else plan.roomiest(targets, self._nodes.free_mib())
        self._step("chunk")
        trouble = privileged.move_pages(guest.pid, _ranges(chunk), target)
        if trouble:
            LOG.debug("Guest %s, pages to node %d: %s", guest.consumer_uuid, target, trouble)


def _ranges(chunk: plan.Chunk) -> list[tuple[int, int, int]]:
    return [(item.start, item.stop, item.step) for item in chunk]
