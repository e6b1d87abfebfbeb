"""The ledger: who holds which slice and which buffer, in which state. One writer, the leader, under its epoch."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from pondstack.ha.lease import Terms
from pondstack.ledger.buffers import Buffers
from pondstack.ledger.escrow import Escrow
from pondstack.ledger.failures import Failures
from pondstack.ledger.free_buffers import FreeBuffers
from pondstack.ledger.holdings import Holdings
from pondstack.ledger.host_sleeps import HostSleeps
from pondstack.ledger.hosts import Hosts
from pondstack.ledger.lends import Lends
from pondstack.ledger.loans import Loans
from pondstack.ledger.mitigations import Mitigations
from pondstack.ledger.plans import Plans
from pondstack.ledger.pools import Pools
from pondstack.ledger.removal import Removal
from pondstack.ledger.slices import Slices
from pondstack.ledger.store import RememberedSplit, Store, Transaction
from pondstack.ledger.transactions import Database, Transactions


class Ledger:
    """All that the leader writes, by noun. Thread-safe. Every method of it and of its parts is one transaction.

    Each renews the lease too. Each raises NotLeader when the epoch is over, Unavailable when the database does not
    answer in time. `down_seconds`: silence after which a host's agent counts as gone; the others: see Transactions.
    """

    def __init__(
        self,
        database: Database,
        epoch: int,
        down_seconds: float = 20.0,
        *,
        store: Store,
        lease_seconds: float = Terms().lease_seconds,
        clock: Callable[[], float] = time.monotonic,
        renewed: Callable[[int, float], object] = lambda _epoch, _started: None,
    ) -> None:
        self.database = database
        self.epoch = epoch
        self._store = store
        self._transactions = transactions = Transactions(
            database, epoch, store, lease_seconds=lease_seconds, clock=clock, renewed=renewed
        )
        self.slices = Slices(transactions)
        self.pools = Pools(transactions)
        self.free_buffers = FreeBuffers(transactions)
        self.hosts = Hosts(transactions, down_seconds)
        self.holdings = Holdings(transactions)
        self.buffers = Buffers(transactions)
        self.loans = Loans(transactions, down_seconds)
        self.escrow = Escrow(transactions, down_seconds)
        self.lends = Lends(transactions)
        self.mitigations = Mitigations(transactions)
        self.host_sleeps = HostSleeps(transactions)
        self.plans = Plans(transactions)
        self.failures = Failures(transactions, self.buffers, down_seconds)
        self.removal = Removal(transactions, down_seconds)

    def renew(self) -> None:
        """Show that this writer lives, and notice when it no longer leads; raises NotLeader."""
        self._transactions.write(lambda _tx: None)

    def remember_splits(self, items: Sequence[RememberedSplit]) -> None:
        """Keep what instances were placed with for their moves, each in place of an older one."""

        def work(tx: Transaction) -> None:
            for item in items:
                self._store.splits.remember(tx, item)

        self._transactions.write(work)

    def once(
        self, operation_id: str, kind: str, arguments: dict[str, Any], work: Callable[[Transaction], dict[str, Any]]
    ) -> dict[str, Any]:
        """Change rows that are beside the ledger's, under its epoch and journaled: the first time `work` is run.

        Returns its effect. Raises OperationMismatch too, and what `work` raises.
        """
        return self._transactions.once(operation_id, kind, arguments, work)

    def prune(
        self,
        keep_seconds: float,
        keep_mitigations_seconds: float | None = None,
        keep_plans_seconds: float | None = None,
    ) -> int:
        """Forget operations and splits that are older than `keep_seconds`; returns how many operations.

        And mitigations and plans that ended longer ago than the other times, None: none; hosts' sleeps after the longer
        of the first two.
        """

        def work(tx: Transaction) -> int:
            self._store.splits.prune(tx, keep_seconds)
            if keep_mitigations_seconds is not None:
                self._store.mitigations.prune(tx, keep_mitigations_seconds)
            self._store.host_sleeps.prune(tx, max(keep_seconds, keep_mitigations_seconds or 0.0))
            if keep_plans_seconds is not None:
                self._store.plans.prune(tx, keep_plans_seconds)
            return self._store.journal.prune(tx, keep_seconds)

        return self._transactions.write(work)
