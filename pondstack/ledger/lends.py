"""What the ledger writes of hosts that are to lend, until that has ended (pondstack.domain.admission).

One at a time per host. Each step is journaled; what follows from a step is the next leader's, too.
"""

from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pondstack.domain.admission import Lend, LendStage
from pondstack.domain.errors import Conflict
from pondstack.domain.lending import LenderKind
from pondstack.ledger.hosts import usable_host
from pondstack.ledger.moves import MOVES
from pondstack.ledger.store import Transaction
from pondstack.ledger.transactions import Transactions

BEGIN, STEP, END = "lend_begun", "lend_step", "lend_ended"


class Lends:
    """All lends that are under way, and how those ended that are not."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._store = transactions.store

    def find(self) -> list[Lend]:
        """Return what is under way, by host."""
        return self._transactions.read(self._store.lends.find)

    def of_host(self, host: str) -> Lend | None:
        """Return what is under way on a host."""
        return self._transactions.read(lambda tx: self._store.lends.get(tx, host))

    def begin(self, operation_id: str, host: str, mib: int, kind: LenderKind) -> Lend | None:
        """Have a host lend so much in all; a repetition returns how far it is, None: it has ended.

        A host that still waits for its memory waits for this from now on. Raises HostUnusable, OperationMismatch, and
        Conflict while the host carries another one out.
        """

        def work(tx: Transaction) -> dict[str, Any]:
            usable_host(self._store, tx, host)
            other = self._store.lends.get(tx, host)
            if other is not None and other.stage is not LendStage.WAITING:
                raise Conflict(f"lend {other.operation_id} is under way on host {host}; wait for its end")
            if other is not None:
                self._note_end(tx, other, 0, f"lend {operation_id} came in its place")
            self._store.lends.put(tx, Lend(host, operation_id, mib, kind))
            lent_mib = sum(item.size_mib for item in self._store.buffers.of_lender(tx, host))
            return {"host": host, "mib": mib, "lent_mib": lent_mib, MOVES: []}

        self._transactions.once(operation_id, BEGIN, {"host": host, "mib": mib, "kind": str(kind)}, work)
        found = self.of_host(host)
        return found if found is not None and found.operation_id == operation_id else None

    def ended(self, operation_id: str) -> tuple[int, str] | None:
        """Return how much was lent when a lend ended, and why it was less; None: there is no word of its end."""
        known = self._transactions.read(lambda tx: self._store.journal.recall(tx, _end_of(operation_id), END))
        return (int(known[1]["done_mib"]), str(known[1]["reason"])) if known else None

    def before(self, operation_id: str) -> int | None:
        """Return how much a host lent when a lend began, in MiB; None: nobody knows any more."""
        known = self._transactions.read(lambda tx: self._store.journal.recall(tx, operation_id, BEGIN))
        return known[1].get("lent_mib") if known else None

    def step(self, lend: Lend, stage: LendStage, reason: str = "") -> Lend | None:
        """Note how far a lend is; returns it, None when it has ended or another one has come. No change, no write."""
        after = replace(lend, stage=stage, reason=reason)
        if after == lend:
            return lend

        def work(tx: Transaction) -> Lend | None:
            present = self._store.lends.get(tx, lend.host)
            if present is None or present.operation_id != lend.operation_id:
                return None
            self._store.lends.put(tx, after)
            if present.stage is not stage:
                about = {"host": lend.host, "operation_id": lend.operation_id}
                self._transactions.note(tx, STEP, about, {**about, "stage": str(stage), MOVES: []})
            return after

        return self._transactions.write(work)

    def end(self, lend: Lend, done_mib: int, reason: str = "") -> bool:
        """Note that a lend has ended, with so much lent in all; `reason`: why it is less than asked for.

        False: it is not at this stage any more.
        """

        def work(tx: Transaction) -> bool:
            present = self._store.lends.get(tx, lend.host)
            if present is None or (present.operation_id, present.stage) != (lend.operation_id, lend.stage):
                return False
            self._note_end(tx, lend, done_mib, reason)
            self._store.lends.remove(tx, lend.host)
            return True

        return self._transactions.write(work)

    def _note_end(self, tx: Transaction, lend: Lend, done_mib: int, reason: str) -> None:
        effect = {"host": lend.host, "done_mib": done_mib, "reason": reason, MOVES: []}
        self._store.journal.record(tx, _end_of(lend.operation_id), END, "", self._transactions.epoch, effect)


def _end_of(operation_id: str) -> str:
    return str(uuid5(NAMESPACE_OID, f"pondstack end of lend {operation_id}"))
