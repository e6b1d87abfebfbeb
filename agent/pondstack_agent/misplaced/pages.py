"""Moves misplaced pool pages back to the pool's node, in the background, as often as memory of that node went offline.

Nothing of it is on disk: a driver counts one evacuation for each node at its start, as the agent may have been killed
between the offlining and the end of this.
"""

import threading
from collections.abc import Callable, Iterable

from oslo_log import log

from pondstack.domain.errors import DeviceFailed, NotFound, PondError
from pondstack_agent.drivers import HostPools
from pondstack_agent.executor import Executor
from pondstack_agent.locks import NamedLocks
from pondstack_agent.misplaced import plan
from pondstack_agent.misplaced.plan import Look, Outcome
from pondstack_agent.mitigation import guest as guests
from pondstack_agent.mitigation.guest import Guest
from pondstack_agent.mitigation.mover import Mover
from pondstack_agent.mitigation.room import HostNodes
from pondstack_agent.qemu.process import is_migrating

LOG = log.getLogger(__name__)


class Interrupted(Exception):
    """The agent ends, or memory of the node goes offline, which would move the pages again."""


class MisplacedPages:
    """Those of all guests of one host. `mitigated` tells of an allocation whether its guest's pages were moved to local
    memory on purpose. `consumers`: locks by consumer, held while a chunk of its guest moves.
    """

    def __init__(
        self,
        *,
        pools: HostPools,
        nodes: HostNodes,
        mover: Mover,
        mitigated: Callable[[str], bool],
        consumers: NamedLocks,
        executor: Executor,
        clock: Callable[[], float],
        find: Callable[[str], Guest] = guests.find,
        migrating: Callable[[int], bool] = is_migrating,
    ) -> None:
        self._pools, self._nodes, self._mover, self._mitigated = pools, nodes, mover, mitigated
        self._consumers, self._executor, self._clock = consumers, executor, clock
        self._find, self._migrating = find, migrating
        self._looks: dict[int, Look] = {}
        self._busy = threading.Lock()
        self._stopping = threading.Event()

    def maintain(self, after_seconds: float) -> None:
        """Look in the background where that is due; at pages that stayed again after `after_seconds`."""
        if self._due(after_seconds) and self._busy.acquire(blocking=False):
            self._executor.submit(self._run, after_seconds)

    def stop(self) -> None:
        """Stop at the next chunk: the agent ends."""
        self._stopping.set()

    def _due(self, after_seconds: float) -> dict[int, int]:
        now, counts = self._clock(), self._pools.evacuations()
        return {
            node: number
            for node, number in counts.items()
            if number is not None and plan.due(self._looks.get(node), number, now, after_seconds)
        }

    def _run(self, after_seconds: float) -> None:
        try:
            for node, evacuations in self._due(after_seconds).items():
                try:
                    outcome, kept = self._move_all_back(node, evacuations), self._nodes.kept_pages(node)
                except (PondError, OSError) as error:
                    outcome, kept = Outcome(left=1, reasons=(f"nobody can tell how many: {error}",)), 0
                look = plan.looked(self._looks.get(node), evacuations, self._clock(), left=outcome.left, kept=kept)
                self._looks[node] = look
                _tell(node, look, outcome)
        except Interrupted:
            LOG.debug("Misplaced pages are moved back later")
        finally:
            self._busy.release()

    def _move_all_back(self, node: int, evacuations: int) -> Outcome:
        outcome = Outcome()
        for allocation_uuid, consumer_uuid in self._on_node(node):
            outcome += self._move_back(node, evacuations, allocation_uuid, consumer_uuid)
        return outcome

    def _on_node(self, node: int) -> Iterable[tuple[str, str]]:
        """Return allocation and consumer of what guests have on a node, but for what is going offline."""
        stuck = self._pools.stuck()
        for item in self._pools.attached():
            if not item.consumer_uuid or item.allocation_uuid in stuck:
                continue
            try:
                nodes = {backing.host_node for backing in self._pools.backings(item.allocation_uuid)}
            except (DeviceFailed, NotFound) as error:  # on its way in or out
                LOG.debug("Pages of allocation %s are left alone: %s", item.allocation_uuid, error)
                continue
            if node in nodes:
                yield item.allocation_uuid, item.consumer_uuid

    def _move_back(self, node: int, evacuations: int, allocation_uuid: str, consumer_uuid: str) -> Outcome:
        try:
            guest = self._find(consumer_uuid)
        except NotFound:
            return Outcome()
        regions = plan.misplaced(guest.regions(), node)
        if not regions or self._mitigated(allocation_uuid):
            return Outcome()
        if self._migrating(guest.pid):
            left = plan.count(regions, node)
            return Outcome(left=left, reasons=(f"guest {consumer_uuid} is being live-migrated",))
        moved, trouble, wanted = 0, "", plan.count(regions, node)
        for chunk in self._mover.pieces(regions):
            if moved >= wanted:
                break  # of a large mapping the rest is where it should be
            if self._stopping.is_set() or self._pools.evacuations().get(node) != evacuations:
                raise Interrupted
            with self._consumers.holding(consumer_uuid):  # nobody begins to mitigate it meanwhile
                if self._mitigated(allocation_uuid):
                    return Outcome(moved)
                spare = self._nodes.spare_pages(node)
                if not spare:
                    break
                done = self._mover.gather(guest, chunk, node, spare)
            moved, trouble = moved + done.moved, done.trouble or trouble
        left = plan.count(guest.regions(), node)
        why = trouble or f"node {node} has no more room than the kernel keeps for itself"
        return Outcome(moved, left, (f"guest {consumer_uuid}: {left} pages, {why}",) if left else ())


def _tell(node: int, look: Look, outcome: Outcome) -> None:
    if outcome.moved or (outcome.left and look.attempt == 1):
        LOG.info(
            "Of the pages of guests on node %d, %d were elsewhere and are moved back, %d stay elsewhere",
            node,
            outcome.moved,
            outcome.left,
        )
    if not look.settled and look.attempt in (1, plan.ATTEMPTS):
        LOG.warning(
            "Pages of guests on node %d stay in local memory that nobody claimed, %s: %s",
            node,
            "tried again later" if look.attempt < plan.ATTEMPTS else "until memory of the node goes offline again",
            "; ".join(outcome.reasons),
        )
