"""The host's remote-memory manager (Zombieland 4.2, 4.4): borrows for consumers, has it used, gives it back."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, InUse, NotFound, PondError, Unavailable, Unclaimed
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.executor import Executor, RecurringWork
from pondstack_agent.locks import NamedLocks
from pondstack_agent.remote.borrow_requests import BorrowRequests
from pondstack_agent.remote.borrowed import Borrowed
from pondstack_agent.remote.extensions import Extensions
from pondstack_agent.remote.moves import Moves
from pondstack_agent.remote.owners import Owners
from pondstack_agent.remote.records import Borrow, BorrowState, Consumer, Consumers, State, disk_uuid
from pondstack_agent.remote.swap_disks import SwapDisks

LOG = log.getLogger(__name__)

ASKED_FOR_SECONDS = 60.0
"""So long a swap disk that Nova has asked for is not ended by anybody else."""
FORGOTTEN_SECONDS = 60.0
"""So long an instance has no claim before what it had here is ended."""


_MOST_NAME = 255
"""Characters of a file's name."""


class RemoteMemory:
    """Of one agent. Locks: a consumer's, and within it those of Borrower."""

    def __init__(
        self,
        *,
        consumers: Consumers,
        owners: Owners,
        extensions: Extensions,
        disks: SwapDisks,
        borrowed: Borrowed,
        asking: BorrowRequests,
        borrower: Borrower,
        executor: Executor,
        host: str,
        mirror_folder: Path,
        mirror_mib: int,
        buffer_mib: int,
        grow_seconds: float,
        locks: NamedLocks | None = None,
        moves: Moves | None = None,
    ) -> None:
        """`host`: this one's name; `mirror_folder`, `mirror_mib`: of the mirrors of instances and their disks."""
        self._consumers, self._owners, self._asking, self._borrower = consumers, owners, asking, borrower
        self._extensions, self._disks, self._borrowed = extensions, disks, borrowed
        self._host, self._folder, self._mirror_mib = host, mirror_folder, mirror_mib
        self._buffer_mib, self._grow_seconds = buffer_mib, grow_seconds
        self._locks = locks or NamedLocks()
        self.moves = moves
        self._maintenance = RecurringWork(executor, self._maintain)
        self._asked_at: dict[str, float] = {}
        self._unclaimed_since: dict[str, float] = {}
        self._trouble: dict[str, str] = {}

    def alloc(
        self,
        consumer_uuid: str,
        *,
        operation_id: str,
        mib: int,
        project_id: str = "",
        user_id: str = "",
        source: str = "",
    ) -> dict[str, Any]:
        """Borrow memory for an instance that has none; idempotent by the operation id. Answers as `get`.

        Guaranteed: all of it or nothing, and it stays until it is released. `source`: the host that the instance comes
        from; what it has there is handed over as far as this host can read it.

        Raises Conflict, OperationMismatch, BadRequest, BufferShortage, HostUnusable, and Unavailable: repeat it, or
        release; what nobody comes back for is undone.
        """
        self._check_whole(mib)
        mirror, now = self._mirror(consumer_uuid), self._consumers.clock()
        wanted = Consumer(consumer_uuid, operation_id, True, mib, mirror, now, project_id, user_id, source=source)
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            if mine is None:
                mine = self._consumers.put(wanted)
            mine.check_same(wanted)
            if mine.state == State.ASKING:
                mine = self._first(mine)
            return self._view(mine)

    def _mirror(self, consumer_uuid: str) -> str:
        """Return the file of a mirror. Hosts may share the folder, and an instance has one at both while it moves."""
        return str(self._folder / f"{consumer_uuid}.{self._host}"[:_MOST_NAME])

    def attach_swap(self, instance_uuid: str, mib: int, project_id: str = "", user_id: str = "") -> dict[str, Any]:
        """Have an instance's swap disk served, the one that it has or a new one; idempotent. Answers as `get`.

        Raises Conflict (it has one of another size, or one that is being released), BadRequest, HostUnusable, and
        Unavailable: repeat it, or release; what nobody comes back for is undone.
        """
        self._check_whole(mib)
        name, now = disk_uuid(instance_uuid), self._consumers.clock()
        mirror = self._mirror(name)
        with self._locks.holding(name):
            mine = self._consumers.get(name)
            if mine is None:
                wanted = Consumer(name, str(uuid4()), False, mib, mirror, now, project_id, user_id)
                mine = self._consumers.begin_disk(replace(wanted, instance_uuid=instance_uuid), self._mirror_mib)
            mine.check_same(replace(mine, project_id=project_id, user_id=user_id))
            if mine.mib != mib:
                raise Conflict(f"instance {instance_uuid} has a swap disk of {mine.mib} MiB; release it first")
            mine = self._consumers.put(mine, at=self._consumers.clock())
            if mine.state == State.ASKING:
                mine = self._first(mine)
            else:
                self._disks.make(mine)
            return self._view(mine)

    def release_swap(self, instance_uuid: str) -> bool:
        """End an instance's swap disk; as `release`. Raises Conflict while somebody has it open."""
        name = disk_uuid(instance_uuid)
        with self._locks.holding(name):
            mine = self._consumers.get(name)
            if mine is None:
                return False
            self._disks.check_unused(mine)
            return self._release(mine)

    def end_swap(self, instance_uuid: str) -> bool:
        """End the swap disk of an instance that nobody claims any more, as the controller says; as `release`.

        Raises InUse while the instance runs or somebody has the disk open, and for a moment after it was asked for: its
        claim may have come after the controller looked.
        """
        name = disk_uuid(instance_uuid)
        with self._locks.holding(name):
            mine = self._consumers.get(name)
            if mine is None:
                return False
            if abs(self._consumers.clock() - mine.at) < ASKED_FOR_SECONDS:
                raise InUse(f"the swap disk of instance {instance_uuid} was asked for less than a minute ago")
            self._disks.check_abandoned(mine)
            LOG.warning("The swap disk of instance %s is ended: nobody claims it any more", instance_uuid)
            return self._release(mine)

    def swap_disks(self) -> dict[str, int]:
        """Return the swap disks that are there, in MiB, by the UUID of their instance."""
        there = [mine for mine in self._consumers.all() if mine.is_disk and mine.state != State.ENDING]
        return {mine.instance_uuid: mine.mib for mine in there}

    def reported(self) -> dict[str, Any]:
        """Return what a report says of who uses borrowed memory here."""
        return {
            "swap_disks": self.swap_disks(),
            "shares": [mine.share for mine in self._consumers.all() if mine.shares],
            "stranded": self._extensions.stranded.reported(),
        }

    def lost_guests(self) -> list[str]:
        """Return the guests whose pages are lost with the hosts where they came from."""
        return self._extensions.stranded.lost()

    def get_swap(self, instance_uuid: str) -> dict[str, Any] | None:
        """Return what an instance has as its swap disk, None when it has none."""
        return self.get(disk_uuid(instance_uuid))

    def extend(self, consumer_uuid: str, memory_mib: int, local_mib: int, disk_mib: int = 0) -> dict[str, Any]:
        """Have the data plane serve an instance's process; see Extensions.extend. Raises NotFound, too. As `get`."""
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            if mine is None or not mine.guaranteed:
                raise NotFound(f"instance {consumer_uuid} has borrowed no memory on this host; call alloc_ext first")
            if mine.state != State.ACTIVE:
                raise Conflict(f"the remote memory of instance {consumer_uuid} is {mine.state}; see alloc_ext")
            return self._view(self._extensions.extend(mine, memory_mib, local_mib, disk_mib))

    def unextend(self, consumer_uuid: str) -> bool:
        """Bring an instance's pages home; see Extensions.unextend. False when they were."""
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            if mine is None or mine.extension is None:
                return False
            self._extensions.unextend(mine)
            return True

    def touched_bytes(self, consumer_uuid: str) -> int | None:
        """Return what of an instance's local node is touched, resident or not; see telemetry.memory.Served."""
        mine = self._consumers.get(consumer_uuid)
        return None if mine is None else self._extensions.touched_bytes(mine)

    def mirror_room(self) -> dict[str, int]:
        """Return {"total_mib", "used_mib"} of the mirrors of instances."""
        return self._extensions.mirror_room()

    def release(self, consumer_uuid: str) -> bool:
        """End the use of all that a consumer has, its pages are gone, and give it back; False when there was none.

        When it returns nobody uses the buffers; the controller is told, again and again if need be. Raises Conflict
        while the data plane serves a process of it.
        """
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            if mine is None:
                return False
            self._extensions.check_unserved(mine)
            return self._release(mine)

    def get(self, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what a consumer has, None when nothing; doc/source/admin/lending.md has all of it."""
        mine = self._consumers.get(consumer_uuid)
        return self._view(mine) if mine else None

    def views(self) -> list[dict[str, Any]]:
        """Return what all consumers have."""
        return [self._view(mine) for mine in self._consumers.all()]

    def recover(self) -> None:
        """Go on with what a former life of the agent had begun, in the background."""
        self.maintain(float("inf"))

    def maintain(self, unanswered_seconds: float) -> None:
        """In the background: compare what is used with the records, go on asking and giving back, undo leftovers."""
        self._maintenance.submit(unanswered_seconds)

    def _check_whole(self, mib: int) -> None:
        if mib <= 0 or mib % self._buffer_mib:
            raise BadRequest(f"memory is borrowed in whole buffers of {self._buffer_mib} MiB, not {mib} MiB")

    def _release(self, mine: Consumer) -> bool:
        try:
            self._end(self._consumers.put(mine, state=State.ENDING))
        except PondError as error:
            LOG.info("What consumer %s has borrowed goes back later: %s", mine.borrower_uuid, error)
        return True

    def _first(self, mine: Consumer) -> Consumer:
        try:
            self._owners.of(mine).make(mine)
        except PondError:
            if not mine.borrows:
                self._end(self._consumers.put(mine, state=State.ENDING))
            raise
        if not mine.guaranteed:
            mine = self._consumers.put(mine, state=State.ACTIVE)
        try:
            mine = self._grow(mine)
        except PondError as error:
            mine = self._now(mine)
            if not mine.guaranteed:
                LOG.info("Consumer %s has its mirror only, for now: %s", mine.consumer_uuid, error)
                return mine
            if not isinstance(error, Unavailable):  # refused; else nobody knows, and its caller comes again
                self._end(self._consumers.put(mine, state=State.ENDING))
            raise
        return self._consumers.put(mine, state=State.ACTIVE)

    def _maintain(self, unanswered_seconds: float) -> None:
        for consumer_uuid in [mine.consumer_uuid for mine in self._consumers.all()]:
            trouble = ""
            try:
                with self._locks.holding(consumer_uuid):
                    mine = self._consumers.get(consumer_uuid)
                    if mine is not None:
                        self._keep(mine, unanswered_seconds)
            except (PondError, OSError) as error:
                trouble = str(error)
            if trouble and self._trouble.get(consumer_uuid) != trouble:  # once, not at each heartbeat
                LOG.warning("The remote memory of consumer %s: %s", consumer_uuid, trouble)
            self._trouble[consumer_uuid] = trouble

    def _keep(self, mine: Consumer, unanswered_seconds: float) -> None:
        late = self._consumers.clock() - mine.at > unanswered_seconds
        unwanted = mine.is_former or (mine.state == State.ASKING and late)
        if unwanted and mine.state != State.ENDING:
            mine = self._consumers.put(mine, state=State.ENDING)
        if mine.state == State.ENDING:
            self._end(mine)
        if mine.state != State.ACTIVE:
            return
        self._drop_empty(mine)
        for name, indexes in self._owners.of(mine).keep(mine).items():
            lender, _, incarnation = name.rpartition("@")
            for allocation_uuid in sorted(mine.allocations):
                held = self._borrower.held(allocation_uuid).get((lender, incarnation), [])
                if gone := sorted(set(held) & set(indexes)):
                    self._borrower.give_back(allocation_uuid, lender, incarnation, gone)
        mine = self._now(mine)
        now = self._consumers.clock()
        if now >= self._asked_at.get(mine.consumer_uuid, 0.0) + self._grow_seconds:
            self._asked_at[mine.consumer_uuid] = now
            self._grow_claimed(mine)

    def _grow_claimed(self, mine: Consumer) -> None:
        """Go on as `_grow`; end what an instance has that Nova forgot: no process, no buffer, and no claim, for long.

        One that is off keeps its claim. Where its guest was lost to Nova elsewhere, nobody here was told of its end.
        """
        try:
            self._grow(mine)
        except Unclaimed:
            mine, now = self._now(mine), self._consumers.clock()
            since = self._unclaimed_since.setdefault(mine.consumer_uuid, now)
            used = mine.extension is not None or self._borrowed.mib(mine) > 0
            if used or not mine.guaranteed or now - since < FORGOTTEN_SECONDS:
                raise
            LOG.warning("What instance %s had here is ended: nobody claims it any more", mine.consumer_uuid)
            self._release(mine)
        self._unclaimed_since.pop(mine.consumer_uuid, None)

    def _grow(self, mine: Consumer) -> Consumer:
        """Go on with requests that are under way, then ask for what is missing."""
        for borrow in list(mine.borrows.values()):
            if borrow.state == BorrowState.ASKED:
                mine = self._go_on(mine, borrow)
            elif borrow.state == BorrowState.UNDOING:
                mine = self._asking.undo(mine, borrow)
        missing = mine.mib - self._borrowed.mib(mine)
        if missing > 0:
            mine, borrow = self._consumers.ask(mine, missing)
            try:
                mine = self._asking.carry(mine, borrow)
            except (Conflict, Unavailable):
                raise
            except PondError as error:
                if not borrow.source:
                    raise
                LOG.info("Host %s hands nothing of %s over: %s", borrow.source, mine.consumer_uuid, error)
                mine, borrow = self._consumers.ask(self._now(mine), missing)
                mine = self._asking.carry(mine, borrow)
        return mine

    def _go_on(self, mine: Consumer, borrow: Borrow) -> Consumer:
        try:
            return self._asking.carry(mine, borrow)
        except Conflict:  # the controller has taken it back meanwhile
            mine = self._now(mine)
            return self._asking.undo(mine, mine.borrows[borrow.operation_id])

    def _drop_empty(self, mine: Consumer) -> None:
        for borrow in mine.borrows.values():
            if borrow.state == BorrowState.OPEN and not self._borrower.held(borrow.allocation_uuid):
                mine = self._consumers.drop(mine, borrow)

    def _end(self, mine: Consumer) -> None:
        """Give back all of a consumer, and forget it. Its owner first: then nobody uses its buffers."""
        self._owners.of(mine).remove(mine)
        mine = self._now(mine)
        for borrow in list(mine.borrows.values()):
            mine = self._asking.undo(mine, borrow)
        if not mine.borrows:
            self._consumers.forget(mine.consumer_uuid)
            self._asked_at.pop(mine.consumer_uuid, None)

    def _now(self, mine: Consumer) -> Consumer:
        return self._consumers.get(mine.consumer_uuid) or mine

    def _view(self, mine: Consumer) -> dict[str, Any]:
        return {
            "consumer_uuid": mine.borrower_uuid,
            "guaranteed": mine.guaranteed,
            "state": str(mine.state),
            "mib": mine.mib,
            "borrowed_mib": self._borrowed.mib(mine),
            "allocations": sorted(mine.allocations),
            **self._owners.of(mine).view(mine),
        }
