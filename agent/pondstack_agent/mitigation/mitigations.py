"""The verb `mitigate`: room first, then pages, then the record, then the slices; each step is on disk before the next.

    room reserved -> MOVING on disk -> pages move -> read back -> MITIGATED on disk -> the driver lets the guest go ->
    the allocation is released as after a detach, while the guest runs on.

One that is held stops at MITIGATED: the driver lets the guest go by the controller's order, once what libvirt keeps of
the guest (`domains`) binds to local memory. A guest that does not run has no pages to move; held, it is MITIGATED at
once.

An agent that is killed leaves MOVING: at its next start that is MITIGATED when the guest uses none of the pool any
more, else FAILED, and the guest is one of the pool as before.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, InUse, NotFound, PondError
from pondstack.rpc.wire import Attached, Mitigation
from pondstack_agent.drivers import HostPools
from pondstack_agent.executor import Executor
from pondstack_agent.host import numa
from pondstack_agent.mitigation import guest as guests
from pondstack_agent.mitigation import plan
from pondstack_agent.mitigation.guest import Cgroup, Guest
from pondstack_agent.mitigation.mover import Aborted, Mover
from pondstack_agent.mitigation.records import Entries, Entry, State
from pondstack_agent.mitigation.room import HostNodes, LocalRoom

LOG = log.getLogger(__name__)

NOWHERE = -1
"""The node of pages that never began to move."""

Finish = Callable[[str, str], None]
"""Releases (consumer, allocation) of a guest that runs on; raises PondError."""


class Mitigations:
    """The mitigations of one host. `finish` is the agent's: it orders releases among other calls of a consumer."""

    def __init__(
        self,
        *,
        entries: Entries,
        pools: HostPools,
        nodes: HostNodes,
        room: LocalRoom,
        mover: Mover,
        executor: Executor,
        find: Callable[[str], Guest] = guests.find,
        cgroup_of: Callable[[Guest], Cgroup] = guests.cgroup_of,
        step: Callable[[str], None] = lambda _name: None,
    ) -> None:
        self._entries, self._pools, self._nodes, self._room, self._mover = entries, pools, nodes, room, mover
        self._executor, self._find, self._cgroup_of, self._step = executor, find, cgroup_of, step
        self._lock = threading.Lock()
        self._stops: dict[str, threading.Event] = {}

    def begin(self, operation_id: str, consumer_uuid: str, finish: Finish, *, hold: bool = False) -> Mitigation:
        """Begin, and return at once; the caller holds the consumer's lock. `hold`: until `release`.

        A repetition by the same operation id, or while one is under way, tells how far it is. Raises NotFound,
        BadRequest, HostUnusable, NoLocalRoom, Conflict: nothing has changed then.
        """
        entry = self._entries.latest(consumer_uuid)
        if entry is not None and (entry.operation_id == operation_id or entry.allocation_uuid in self._stops):
            return self._now(entry)
        attached = self._attached(consumer_uuid)
        node, mib = self._pool_node(attached)
        try:
            guest = self._find(consumer_uuid)
        except NotFound:
            if not hold:
                raise
            return self._at_rest(operation_id, attached, node)
        cgroup = self._cgroup_of(guest)
        targets = plan.targets(cgroup.allowed(), self._nodes.with_cpus(), node)
        tag = attached.allocation_uuid
        regions = guest.regions_on(node)
        pages = numa.pages_on(regions, node)
        # Room for all of it: what the guest has not touched yet comes from local memory, too, once it does.
        self._room.reserve(tag, max(mib, -(-pages * numa.PAGE_KIB // 1024)), targets)
        try:
            self._step("record")
            entry = self._entries.put(
                Entry(operation_id, consumer_uuid, tag, node, self._entries.clock(), pages=pages, left=pages, hold=hold)
            )
        except BaseException:
            self._room.give_back(tag)
            raise
        with self._lock:
            self._stops[tag] = threading.Event()
        LOG.info("Guest %s: %d pages move from node %d to %s", consumer_uuid, pages, node, targets)
        move = partial(self._mover.move, guest, cgroup, node, targets, regions, self._stops[tag].is_set)
        self._executor.submit(self._run, entry, move, finish)
        return entry.answer()

    def check(self, consumer_uuid: str) -> None:
        """Raise BadRequest when what the guest has of the pool cannot be copied, whatever else is the matter."""
        for attached in self._pools.attached():
            if attached.consumer_uuid == consumer_uuid:
                self._pool_node(attached)

    def progress(self, consumer_uuid: str) -> Mitigation | None:
        """Return how far a guest's newest mitigation is, None when there was none."""
        entry = self._entries.latest(consumer_uuid)
        return self._now(entry) if entry else None

    def on_record(self, allocation_uuid: str) -> bool:
        """Tell whether the pages of an allocation's guest move, or some or all of them have moved and stay local."""
        return self._entries.has(allocation_uuid)

    def abort(self, consumer_uuid: str, operation_id: str = "") -> Mitigation:
        """Ask one to stop at the next chunk; pages stay where they are, slices with the guest.

        `operation_id`: one that has not begun is written down as aborted, and never will; the caller holds the
        consumer's lock. Raises NotFound, and Conflict for a held one whose pages have all moved.
        """
        entry = self._entries.latest(consumer_uuid)
        under_way = entry is not None and entry.allocation_uuid in self._stops
        if operation_id and not under_way and (entry is None or entry.operation_id != operation_id):
            return self._never(operation_id, self._attached(consumer_uuid))
        if entry is None:
            raise NotFound(f"guest {consumer_uuid} is not being mitigated on this host")
        if entry.hold and entry.state == State.MITIGATED:
            raise Conflict(f"all pages of guest {consumer_uuid} have moved to local memory; it is too late to abort")
        with self._lock:
            stop = self._stops.get(entry.allocation_uuid)
        if stop is not None:
            stop.set()
        return self._now(entry)

    def release(self, consumer_uuid: str, finish: Finish) -> bool:
        """Release what a held guest has no more need of; True when nothing is held, False while it goes offline.

        The caller does not hold the consumer's lock. The order is on disk first: it is tried again until it is done.
        Raises InUse when the guest has or may get pages there again, Conflict when it is not mitigated.
        """
        mine = {item.allocation_uuid for item in self._pools.held_by(consumer_uuid)}
        if not mine:
            return True
        entry = self._entries.latest(consumer_uuid)
        if entry is None or entry.allocation_uuid not in mine or entry.state != State.MITIGATED:
            raise Conflict(f"guest {consumer_uuid} is not mitigated, and keeps its pool memory; mitigate it first")
        if entry.hold:
            entry = self._entries.put(entry, hold=False)
        self._step("release")
        finish(consumer_uuid, entry.allocation_uuid)
        return not self._pools.held_by(consumer_uuid)

    def stop(self) -> None:
        """Stop all at their next chunk: the agent ends."""
        with self._lock:
            for stop in self._stops.values():
                stop.set()

    def recover(self, finish: Finish) -> None:
        """Decide what a former life left MOVING by what the kernel says; give back what is MITIGATED."""
        entries = self._entries.all()
        held = self._held(entries)
        for entry in entries:
            if entry.state == State.MOVING:
                try:
                    self._mover.check(self._find(entry.consumer_uuid), entry.pool_node)
                except PondError:
                    text = "the agent was restarted meanwhile; the guest keeps its pool memory: mitigate again"
                    self._entries.put(entry, state=State.FAILED, reason=text, left=self._left(entry))
                    continue
                entry = self._entries.put(entry, state=State.MITIGATED, left=0)
            if entry.state == State.MITIGATED and entry.allocation_uuid in held and not entry.hold:
                self._finish(entry, finish)

    def tidy(self, keep_seconds: float, finish: Finish) -> None:
        """Try again what could not be released; forget what ended long ago."""
        entries = self._entries.all()
        held = self._held(entries)
        for entry in entries:
            if entry.allocation_uuid in self._stops:
                continue
            if entry.state == State.MITIGATED and entry.allocation_uuid in held:
                if not entry.hold:
                    self._finish(entry, finish)
            elif self._entries.clock() - entry.at > keep_seconds:
                self._entries.forget(entry)

    def _run(self, entry: Entry, move: Callable[[], None], finish: Finish) -> None:
        begun, left = self._entries.clock(), 0
        try:
            move()
            self._step("mitigated")
            state, reason = State.MITIGATED, ""
        except Aborted:
            state, reason = State.ABORTED, "aborted: the guest keeps its pool memory, and what moved stays local"
        except Exception as error:  # whatever it is, nobody waits for its end in vain
            state, reason = State.FAILED, str(error) or type(error).__name__
            LOG.warning("Guest %s is not mitigated: %s", entry.consumer_uuid, reason, exc_info=not _ours(error))
        finally:
            self._room.give_back(entry.allocation_uuid)
        if state is not State.MITIGATED:
            left = self._left(entry)
        entry = self._entries.put(entry, state=state, reason=reason, left=left, seconds=self._entries.clock() - begun)
        with self._lock:
            del self._stops[entry.allocation_uuid]
        if state is State.MITIGATED and not entry.hold:
            self._finish(entry, finish)

    def _never(self, operation_id: str, attached: Attached) -> Mitigation:
        """Note that a mitigation was aborted before it began."""
        entry = Entry(operation_id, attached.consumer_uuid, attached.allocation_uuid, NOWHERE, self._entries.clock())
        return self._entries.put(entry, state=State.ABORTED, reason="aborted before it began", hold=True).answer()

    def _at_rest(self, operation_id: str, attached: Attached, node: int) -> Mitigation:
        """Note that a guest has nothing to move: it does not run."""
        self._step("record")
        consumer, tag, now = attached.consumer_uuid, attached.allocation_uuid, self._entries.clock()
        entry = Entry(operation_id, consumer, tag, node, now, state=State.MITIGATED, hold=True)
        return self._entries.put(entry).answer()

    def _finish(self, entry: Entry, finish: Finish) -> None:
        self._step("release")
        try:
            finish(entry.consumer_uuid, entry.allocation_uuid)
        except PondError as error:
            LOG.warning("Allocation %s, whose guest is mitigated, stays: %s", entry.allocation_uuid, error)

    def _now(self, entry: Entry) -> Mitigation:
        if entry.state != State.MOVING:
            return entry.answer()
        return entry.answer(left=self._left(entry), seconds=self._entries.clock() - entry.at)

    def _held(self, entries: Sequence[Entry]) -> set[str]:
        return {item.allocation_uuid for item in self._pools.attached()} if entries else set()

    def _left(self, entry: Entry) -> int:
        try:
            return numa.count(self._find(entry.consumer_uuid).numa_maps(), entry.pool_node)
        except NotFound:
            return entry.left

    def _attached(self, consumer_uuid: str) -> Attached:
        mine = [item for item in self._pools.attached() if item.consumer_uuid == consumer_uuid]
        if not mine:
            raise NotFound(f"guest {consumer_uuid} has no pool memory on this host")
        if len(mine) > 1:
            raise Conflict(
                f"guest {consumer_uuid} has {len(mine)} allocations on this host; detach the older one first"
            )
        if mine[0].allocation_uuid in self._pools.stuck():
            raise InUse(f"allocation {mine[0].allocation_uuid} is going offline already; see the host's report")
        return mine[0]

    def _pool_node(self, attached: Attached) -> tuple[int, int]:
        backings = self._pools.backings(attached.allocation_uuid)
        nodes = {backing.host_node for backing in backings}
        node = nodes.pop()
        if nodes or node is None:
            raise BadRequest(
                f"allocation {attached.allocation_uuid} is not on one node of the host (an emulated device is a file); "
                "live-migrate its guest instead"
            )
        return node, sum(backing.size_mib for backing in backings)


def _ours(error: Exception) -> bool:
    return isinstance(error, (PondError, OSError))
