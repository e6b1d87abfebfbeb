"""What a host does as a lender, when the controller calls it and by itself (the remote-mem-mgr of Zombieland 4.1)."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from oslo_log import log

from pondstack.domain.admission import LentReport
from pondstack.domain.errors import NotAligned, NotFound, PondError, Unavailable
from pondstack.domain.lending import LenderKind
from pondstack_agent.executor import Executor, RecurringWork
from pondstack_agent.helper.client import HelperSilent
from pondstack_agent.lending.client import LenderClient
from pondstack_agent.lending.lend_operation import Lends, retire
from pondstack_agent.lending.lending_report import LendingReport
from pondstack_agent.lending.model import Holding
from pondstack_agent.lending.reclaim_operation import Reclaims
from pondstack_agent.lending.records import Entries, Entry, State, Verb
from pondstack_agent.lending.room import HostRoom
from pondstack_agent.lending.runs import runs

LOG = log.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""So long a report waits for a lender that may be frozen."""


class Lending:
    """The lender side of one agent. Its memory is of another process (LenderClient) and outlives it."""

    def __init__(
        self,
        *,
        client: LenderClient,
        room: HostRoom,
        entries: Entries,
        telling: LendingReport,
        lends: Lends,
        reclaims: Reclaims,
        executor: Executor,
        reclaim_seconds: float,
    ) -> None:
        self._client, self._room, self._entries, self._telling = client, room, entries, telling
        self._lends, self._reclaims, self._executor = lends, reclaims, executor
        self._reclaim_seconds = reclaim_seconds
        self._working = threading.RLock()
        self._maintenance = RecurringWork(executor, self._maintain)
        self._beginning = threading.Lock()
        self._seen = Holding()

    def lend(self, operation_id: str, mib: int, kind: LenderKind) -> dict[str, Any]:
        """Have up to so many MiB registered in all; goes on in the background.

        Answers its progress, as get_lending does. Raises NotAligned, Conflict, OperationMismatch.
        """
        if mib % self._client.buffer_mib:
            raise NotAligned(
                f"{mib} MiB is no whole number of buffers of {self._client.buffer_mib} MiB ([lending] buffer_mib)"
            )
        return self._begin(Entry(operation_id, Verb.LEND, mib, self._entries.clock(), str(kind)))

    def reclaim(self, operation_id: str, mib: int, seconds: float | None = None) -> dict[str, Any]:
        """Take so many MiB back, after `seconds` without the controller (GS_reclaim).

        Answers its progress. Raises Conflict, OperationMismatch, Unavailable.
        """
        now, holding = self._entries.clock(), self._client.hold()
        ends_at = now + (self._reclaim_seconds if seconds is None else seconds)
        wanted = Entry(operation_id, Verb.RECLAIM, mib, now, "", holding.incarnation, holding.mib, ends_at)
        return self._begin(wanted)

    def export(
        self,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str = "",
        generations: Mapping[int, int] | None = None,
    ) -> dict[str, Any]:
        """Make keys of buffers for one borrower; the same answer while they live.

        Answers {"incarnation", "ticket", "keys": {index: key}}. Raises NotFound, InUse, Unavailable, and Conflict when
        a key of one of `generations` has been ended before it came.
        """
        present = incarnation or self._client.hold().incarnation
        if not present:
            raise NotFound("this host lends nothing; lend first")
        return {"incarnation": present, **self._client.export(present, indexes, borrower, generations)}

    def escrow(
        self, indexes: Sequence[int], borrower: str, incarnation: str, generations: Mapping[int, int]
    ) -> dict[str, Any]:
        """Make keys of free buffers for one of several borrowers; answers and raises as `export`."""
        return {"incarnation": incarnation, **self._client.escrow(incarnation, indexes, borrower, generations)}

    def share(
        self, indexes: Sequence[int], borrower: str, incarnation: str, generations: Mapping[int, int]
    ) -> dict[str, Any]:
        """Make keys more of buffers in use, for the host that their consumer moves to; answers as `export`."""
        return {"incarnation": incarnation, **self._client.share(incarnation, indexes, borrower, generations)}

    def revoke(
        self, indexes: Sequence[int], incarnation: str = "", generations: Mapping[int, int] | None = None
    ) -> list[int]:
        """End the keys of buffers (US_reclaim, Zombieland 4.3); returns which have none now.

        Only of `generations` up to these: a newer key is another owner's. Their content is gone, too. Raises
        Unavailable.
        """
        present = self._present(incarnation)
        return self._client.revoke(present, indexes, generations) if present else list(indexes)

    def withdraw(self, indexes: Sequence[int], incarnation: str = "") -> list[int]:
        """Give the memory of buffers back to the host; returns which are gone.

        Raises Unavailable, and InUse while one of their keys lives.
        """
        present = self._present(incarnation)
        gone = self._client.withdraw(present, indexes) if present else list(indexes)
        if present and self._working.acquire(blocking=False):
            try:
                if not self._entries.unfinished():
                    retire(self._client, self._telling)
            finally:
                self._working.release()
        return gone

    def get_lending(self) -> dict[str, Any]:
        """Return what is lent, how much more could be, and how far operations are (doc/source/admin/lending.md)."""
        holding, answers = self._look()
        return {**holding.to_wire(), **self._state(holding, answers)}

    def get_lent(self) -> LentReport:
        """Return what is lent now, for Placement.

        Raises HelperSilent when the lender does not say: what it held before may be less.
        """
        return self._client.hold(_LOOK_SECONDS).lent()

    def report(self) -> dict[str, Any]:
        """Return the same for a report, with equal buffers next to each other as one run."""
        holding, answers = self._look()
        return {**holding.to_wire(), "buffers": runs(holding.buffers), **self._state(holding, answers)}

    def maintain(self, keep_seconds: float) -> None:
        """Go on with what is unfinished, notice a lost lender and memory pressure; in the background."""
        self._maintenance.submit(keep_seconds)

    def stop(self) -> None:
        """The agent ends; what is lent stays lent."""
        self._lends.stop()

    def _begin(self, wanted: Entry) -> dict[str, Any]:
        with self._beginning:
            entry = self._entries.begin(wanted)
        if entry.state != State.DONE:
            self._executor.submit(self._work, entry.operation_id)
        return entry.to_wire(self._look()[0].mib)

    def _present(self, incarnation: str) -> str:
        """Return the incarnation to ask, '' when the one that is meant is gone, and all its keys with it."""
        present = self._client.hold().incarnation
        return present if incarnation in ("", present) else ""

    def _work(self, operation_id: str) -> None:
        """Go on with an operation, unless another thread is at one: `maintain` comes again."""
        if not self._working.acquire(blocking=False):
            return
        try:
            entry = self._entries.get(operation_id)
            if entry is not None and entry.state != State.DONE:
                (self._lends if entry.verb == Verb.LEND else self._reclaims).step(entry)
        except Unavailable as error:
            LOG.debug("Operation %s goes on later: %s", operation_id, error)
        except PondError as error:
            LOG.warning("Operation %s goes on later: %s", operation_id, error)
        finally:
            self._working.release()

    def _maintain(self, keep_seconds: float) -> None:
        if self._working.acquire(blocking=False):  # an operation that starts a lender is no loss of one
            try:
                self._watch()
            except Unavailable as error:
                LOG.debug("Lent memory is looked at later: %s", error)
            finally:
                self._working.release()
        for entry in self._entries.unfinished():
            self._work(entry.operation_id)
        self._entries.prune(keep_seconds)

    def _watch(self) -> None:
        sequence, holding = self._telling.next(), self._client.hold()
        self._telling.tell_loss(sequence, holding)
        if not self._entries.unfinished() and (mib := self._room.wanted_back_mib(holding)):
            LOG.warning("Memory is short on this host: it takes %d MiB back", mib)
            self.reclaim(str(uuid4()), mib, None)

    def _look(self) -> tuple[Holding, bool]:
        """Return what is lent, and whether the lender said so now: a frozen one holds what it held."""
        try:
            self._seen = self._client.hold(_LOOK_SECONDS)
        except HelperSilent:
            return self._seen, False
        return self._seen, True

    def _state(self, holding: Holding, answers: bool) -> dict[str, Any]:
        size = holding.buffer_mib or self._client.buffer_mib
        operations = [entry.to_wire(holding.mib) for entry in self._entries.all()[-10:]]
        lendable = self._room.lendable_mib(holding, size)
        return {
            "failed": holding.failed(),
            "answers": answers,
            "buffer_mib": size,
            "lendable_mib": lendable,
            "operations": operations,
        }
