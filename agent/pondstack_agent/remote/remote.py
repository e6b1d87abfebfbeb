"""The host's remote-memory manager (Zombieland 4.2, 4.4): borrows for consumers, keeps page stores, gives back."""

from pathlib import Path
from typing import Any

from oslo_log import log

from pondstack.domain.errors import BadRequest, Conflict, PondError, Unavailable
from pondstack_agent.borrower.borrower import Borrower
from pondstack_agent.executor import Executor, RecurringWork
from pondstack_agent.locks import NamedLocks
from pondstack_agent.pagestore.exporter import SOCKET
from pondstack_agent.remote.borrow_requests import BorrowRequests
from pondstack_agent.remote.records import Borrow, BorrowState, Consumer, Consumers, State
from pondstack_agent.remote.stores import PageStores

LOG = log.getLogger(__name__)


class RemoteMemory:
    """Of one agent. Locks: a consumer's, and within it those of Borrower."""

    def __init__(
        self,
        *,
        consumers: Consumers,
        stores: PageStores,
        asking: BorrowRequests,
        borrower: Borrower,
        executor: Executor,
        mirror_folder: Path,
        mirror_mib: int,
        buffer_mib: int,
        grow_seconds: float,
    ) -> None:
        self._consumers, self._stores, self._asking, self._borrower = consumers, stores, asking, borrower
        self._folder = mirror_folder
        self._mirror_mib, self._buffer_mib, self._grow_seconds = mirror_mib, buffer_mib, grow_seconds
        self._locks = NamedLocks()
        self._maintenance = RecurringWork(executor, self._maintain)
        self._asked_at: dict[str, float] = {}
        self._trouble: dict[str, str] = {}

    def alloc(
        self,
        consumer_uuid: str,
        *,
        guaranteed: bool,
        operation_id: str,
        mib: int,
        project_id: str = "",
        user_id: str = "",
    ) -> dict[str, Any]:
        """Borrow memory for a consumer that has none; idempotent by the operation id. Answers as `get`.

        Guaranteed: all of it or nothing, and it stays until it is released. Else as much as there is, and more in the
        background; all `mib` can be used at once: pages that no lender has room for are in the mirror only.

        Raises Conflict, OperationMismatch, BadRequest, BufferShortage and HostUnusable if guaranteed, and Unavailable:
        repeat it, or release; what nobody comes back for is undone.
        """
        if mib <= 0 or mib % self._buffer_mib:
            raise BadRequest(f"memory is borrowed in whole buffers of {self._buffer_mib} MiB, not {mib} MiB")
        mirror = str(self._folder / f"{consumer_uuid}.mirror")
        now = self._consumers.clock()
        wanted = Consumer(consumer_uuid, operation_id, guaranteed, mib, mirror, now, project_id, user_id)
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            if mine is None:
                mine = self._consumers.begin(wanted, self._mirror_mib)
            mine.check_same(wanted)
            if mine.state == State.ASKING:
                mine = self._first(mine)
            return self._view(mine)

    def release(self, consumer_uuid: str) -> bool:
        """End a consumer's page store, its pages are gone, and give back what was borrowed; False when there was none.

        When it returns nobody uses the buffers; the controller is told, again and again if need be.
        """
        with self._locks.holding(consumer_uuid):
            mine = self._consumers.get(consumer_uuid)
            if mine is None:
                return False
            try:
                self._end(self._consumers.put(mine, state=State.ENDING))
            except PondError as error:
                LOG.info("What consumer %s has borrowed goes back later: %s", consumer_uuid, error)
            return True

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
        """See to page stores, go on asking and giving back, undo what nobody came back for; in the background."""
        self._maintenance.submit(unanswered_seconds)

    def _first(self, mine: Consumer) -> Consumer:
        try:
            self._stores.make(mine)
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
        if mine.state == State.ASKING and self._consumers.clock() - mine.at > unanswered_seconds:
            mine = self._consumers.put(mine, state=State.ENDING)
        if mine.state == State.ENDING:
            self._end(mine)
        if mine.state != State.ACTIVE:
            return
        self._drop_empty(mine)
        for name, indexes in self._stores.keep(mine).items():
            lender, _, incarnation = name.rpartition("@")
            for allocation_uuid in sorted(mine.allocations):
                held = self._borrower.held(allocation_uuid).get((lender, incarnation), [])
                if gone := sorted(set(held) & set(indexes)):
                    self._borrower.give_back(allocation_uuid, lender, incarnation, gone)
        mine = self._now(mine)
        now = self._consumers.clock()
        if now >= self._asked_at.get(mine.consumer_uuid, 0.0) + self._grow_seconds:
            self._asked_at[mine.consumer_uuid] = now
            self._grow(mine)

    def _grow(self, mine: Consumer) -> Consumer:
        """Go on with requests that are under way, then ask for what is missing."""
        for borrow in list(mine.borrows.values()):
            if borrow.state == BorrowState.ASKED:
                mine = self._go_on(mine, borrow)
            elif borrow.state == BorrowState.UNDOING:
                mine = self._asking.undo(mine, borrow)
        missing = mine.mib - self._stores.borrowed_mib(mine)
        if missing > 0:
            mine, borrow = self._consumers.ask(mine, missing)
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
        """Give back all of a consumer, and forget it. The page store first: then nobody uses its buffers."""
        self._stores.remove(mine)
        for borrow in list(mine.borrows.values()):
            mine = self._asking.undo(mine, borrow)
        if not mine.borrows:
            self._consumers.forget(mine.consumer_uuid)
            self._asked_at.pop(mine.consumer_uuid, None)

    def _now(self, mine: Consumer) -> Consumer:
        return self._consumers.get(mine.consumer_uuid) or mine

    def _view(self, mine: Consumer) -> dict[str, Any]:
        client = self._stores.client(mine)
        store: dict[str, Any] | None = None
        try:
            store = client.view()
        except PondError as error:
            LOG.debug("The page store of consumer %s does not answer: %s", mine.consumer_uuid, error)
        return {
            "consumer_uuid": mine.consumer_uuid,
            "guaranteed": mine.guaranteed,
            "state": str(mine.state),
            "mib": mine.mib,
            "borrowed_mib": self._stores.borrowed_mib(mine),
            "allocations": sorted(mine.allocations),
            "socket": str(client.folder / SOCKET),
            "store": store,
        }
