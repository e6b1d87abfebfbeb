"""Transactions of the ledger: each first checks the epoch, each renews the lease, an operation id happens once.

Whatever writes the ledger (slices, buffers, hosts, pools, failures) does it through these.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from pondstack.domain.errors import OperationMismatch
from pondstack.ha.lease import Terms
from pondstack.ledger.store import Store, Transaction

T = TypeVar("T")
AT_A_TIME = 2
"""How many transactions of one writer are under way in the database."""


class Database(Protocol):
    """Runs transactions, wholly or not at all; raises Unavailable."""

    def write(self, work: Callable[[Any], T], turn: AbstractContextManager[Any] | None = None) -> T:
        """Run `work` and keep what it changed; it may run more than once. `turn` is held while it does."""

    def read(self, work: Callable[[Any], T]) -> T:
        """Run `work`, which changes nothing, at one moment."""


def fingerprint(arguments: dict[str, Any]) -> str:
    """Return a digest of a request, so that a reused operation id is noticed."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Transactions:
    """Writes under one epoch. Thread-safe.

    Each write moves the end of the lease `lease_seconds` away; `renewed(epoch, started)` hears of it, with the moment
    by `clock` at which the transaction that was committed began (pondstack.ha.candidate.Candidate.renewed).
    """

    def __init__(
        self,
        database: Database,
        epoch: int,
        store: Store,
        *,
        lease_seconds: float = Terms().lease_seconds,
        clock: Callable[[], float] = time.monotonic,
        renewed: Callable[[int, float], object] = lambda _epoch, _started: None,
    ) -> None:
        self.epoch = epoch
        self.store = store
        self._database = database
        self._lease = lease_seconds
        self._clock = clock
        self._renewed = renewed
        # All would queue up for the leadership row in the database, and a leader that is paused would hold it up once
        # for each of them, a second every time. Two at a time keep the row as busy as many: the second has it while
        # the first is being made durable.
        self._turn = threading.BoundedSemaphore(AT_A_TIME)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work`, which changes nothing; raises Unavailable."""
        return self._database.read(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` if the epoch has not ended; raises NotLeader, Unavailable, and what `work` raises."""
        started = self._clock()

        def guarded(tx: Transaction) -> T:
            nonlocal started
            started = self._clock()
            self.store.check_epoch(tx, self.epoch, self._lease)
            return work(tx)

        answer = self._database.write(guarded, self._turn)
        self._renewed(self.epoch, started)
        return answer

    def once(
        self,
        operation_id: str,
        kind: str,
        arguments: dict[str, Any],
        work: Callable[[Transaction], dict[str, Any]],
        repeated: Callable[[Transaction, dict[str, Any]], None] = lambda _tx, _effect: None,
    ) -> dict[str, Any]:
        """Run a journaled transaction: the first time `work` makes the effect, later the journal tells it.

        `repeated(tx, effect)` may object to a repetition. Raises OperationMismatch too.
        """
        digest = fingerprint(arguments)

        def guarded(tx: Transaction) -> dict[str, Any]:
            known = self.store.journal.recall(tx, operation_id, kind)
            if known is None:
                effect = work(tx)
                self.store.journal.record(tx, operation_id, kind, digest, self.epoch, effect)
                return effect
            if known[0] != digest:
                raise OperationMismatch(
                    f"operation {operation_id} ({kind}) was already used for another request; make a new id"
                )
            repeated(tx, known[1])
            return known[1]

        return self.write(guarded)

    def journal(
        self, kind: str, arguments: dict[str, Any], work: Callable[[Transaction], dict[str, Any]]
    ) -> dict[str, Any]:
        """Journal a change of the controller's own under a fresh id: a retry after a lost commit is harmless."""
        return self.once(str(uuid4()), kind, arguments, work)

    def note(self, tx: Transaction, kind: str, arguments: dict[str, Any], effect: dict[str, Any]) -> None:
        """Journal, within a transaction of write(), what it did besides."""
        self.store.journal.record(tx, str(uuid4()), kind, fingerprint(arguments), self.epoch, effect)
