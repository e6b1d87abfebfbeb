"""The lease row in a MemoryStore: pondstack.ha.lease.LeaseStore, as pondstack.db.leadership is in SQL."""

from dataclasses import replace

from pondstack.db.leadership import HANDED_OVER
from pondstack.domain.errors import NotLeader
from pondstack.ha.lease import LONGEST_LEASE_SECONDS, Lease, Terms
from pondstack.testing.memory_store import LeadershipRow, MemoryStore, Transaction


def check_epoch(tx: Transaction, epoch: int, lease_seconds: float = Terms().lease_seconds) -> None:
    """Be the first statement of every transaction of the ledger, and renew the lease; raises NotLeader."""
    row = tx.tables.leadership[1]
    if row.epoch != epoch or row.expires_at <= HANDED_OVER:
        raise NotLeader(f"this controller's epoch {epoch} has ended; call again, the leader answers")
    now = tx.now()
    tx.put(tx.tables.leadership, 1, replace(row, renewed_at=now, expires_at=now + lease_seconds))


class MemoryLease:
    """The leadership row of one store, judged by the store's clock."""

    def __init__(self, database: MemoryStore) -> None:
        self._database = database

    def look(self) -> Lease:
        """Return the row."""

        def work(tx: Transaction) -> Lease:
            row = tx.tables.leadership[1]
            remaining = row.expires_at - tx.now()
            if remaining > LONGEST_LEASE_SECONDS:
                remaining = 0.0
            return Lease(row.epoch, row.holder, remaining, row.successor)

        return self._database.read(work)

    def take(self, expected: int, holder: str, lease_seconds: float) -> bool:
        """Take epoch `expected` + 1 if the lease is over and nobody else did; as LeaseStore.take."""

        def work(tx: Transaction) -> bool:
            row, now = tx.tables.leadership[1], tx.now()
            over = row.expires_at <= now or row.expires_at > now + LONGEST_LEASE_SECONDS
            if row.epoch == expected and over:
                taken = LeadershipRow(expected + 1, holder, renewed_at=now, expires_at=now + lease_seconds)
                tx.put(tx.tables.leadership, 1, taken)
                return True
            return row.epoch == expected + 1 and row.holder == holder

        return self._database.write(work)

    def renew(self, epoch: int, lease_seconds: float) -> None:
        """Move the end of the lease away; raises NotLeader."""
        self._database.write(lambda tx: check_epoch(tx, epoch, lease_seconds))

    def hand_over(self, epoch: int, successor: str) -> None:
        """End the lease now, for the holder's own writes too; raises NotLeader."""

        def work(tx: Transaction) -> None:
            row = tx.tables.leadership[1]
            if row.epoch != epoch:
                raise NotLeader(f"this controller's epoch {epoch} has ended; there is nothing to hand over")
            tx.put(tx.tables.leadership, 1, replace(row, expires_at=HANDED_OVER, successor=successor))

        self._database.write(work)


def take_over(database: MemoryStore, holder: str = "test", lease_seconds: float = Terms().lease_seconds) -> int:
    """Start the next epoch for `holder`, whether the lease is over or not; returns the epoch."""

    def work(tx: Transaction) -> int:
        now = tx.now()
        row = LeadershipRow(tx.tables.leadership[1].epoch + 1, holder, renewed_at=now, expires_at=now + lease_seconds)
        tx.put(tx.tables.leadership, 1, row)
        return row.epoch

    return database.write(work)
