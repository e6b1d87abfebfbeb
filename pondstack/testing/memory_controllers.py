"""The controllers that take part, in a MemoryStore; what pondstack.db.controllers is in SQL."""

from dataclasses import dataclass, replace

from pondstack.db.controllers import DOWN, LEADER, STANDBY
from pondstack.db.views import ControllerView
from pondstack.testing.memory_store import Transaction

__all__ = ["DOWN", "LEADER", "STANDBY", "leave", "say", "views"]


@dataclass(frozen=True, slots=True)
class ControllerRow:
    """What one controller last said of itself."""

    name: str
    holder: str
    role: str
    epoch: int
    started_at: float
    seen_at: float
    followed_sequence: int
    reached_at: float | None


def say(
    tx: Transaction,
    name: str,
    holder: str,
    *,
    role: str,
    epoch: int,
    followed_sequence: int,
    reached_seconds: float | None = None,
) -> str:
    """Write down what a controller says of itself; returns the holder that the row named before, "" for none."""
    row, now = tx.tables.controllers.get(name), tx.now()
    before = row.holder if row else ""
    started = row.started_at if row and before == holder else now
    epoch = epoch or (row.epoch if row else 0)
    reached = None if reached_seconds is None else now - reached_seconds
    said = ControllerRow(name, holder, role, epoch, started, now, followed_sequence, reached)
    tx.put(tx.tables.controllers, name, said)
    return before


def leave(tx: Transaction, name: str, holder: str) -> None:
    """A controller stops: its row says so, unless another life of it has come up already."""
    row = tx.tables.controllers.get(name)
    if row is not None and row.holder == holder:
        tx.put(tx.tables.controllers, name, replace(row, role=DOWN, seen_at=tx.now()))


def views(tx: Transaction, down_seconds: float) -> list[ControllerView]:
    """Return all controllers by name. Who leads is the lease's word, who is down that of the clock or its own."""
    newest = max((row.sequence for row in tx.tables.operations.values()), default=0)
    lease, now = tx.tables.leadership[1], tx.now()
    found = []
    for name, row in sorted(tx.tables.controllers.items()):
        seen = max(0.0, now - row.seen_at)
        leads = lease.epoch if lease.expires_at > now and lease.holder == row.holder else 0
        down = row.role != STANDBY or seen > down_seconds
        followed = newest if leads else row.followed_sequence
        role = LEADER if leads else DOWN if down else STANDBY
        lag = max(0, newest - followed)
        reached = None if row.reached_at is None else max(0.0, now - row.reached_at)
        epoch = leads or row.epoch
        found.append(ControllerView(name, row.holder, role, epoch, row.started_at, seen, followed, lag, reached))
    return found
