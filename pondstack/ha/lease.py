"""Who leads: for now, whoever started last. The epoch is the fence: ledger, agents, devices refuse older ones."""

from typing import Protocol


class LeadershipStore(Protocol):
    """Where the epoch lives (pondstack.db.leadership.SqlLeadership)."""

    def read_epoch(self) -> int:
        """Return the present epoch."""

    def compare_and_take(self, expected: int, holder: str) -> bool:
        """Take epoch `expected` + 1 for `holder`, unique to this process, unless the epoch is no longer `expected`."""


def take_epoch(store: LeadershipStore, holder: str) -> int:
    """Return a new epoch, larger than all before; nobody else ever gets the same one."""
    while True:
        epoch = store.read_epoch()
        if store.compare_and_take(epoch, holder):
            return epoch + 1
