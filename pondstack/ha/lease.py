"""The lease: one row says who may write and until when, judged by the database's clock alone.

Its epoch only grows, by compare-and-swap. The lease determines when another controller may stand for election; only the
epoch, which every ledger transaction, every agent and every device checks, keeps a former leader from writing.
"""

from dataclasses import dataclass
from typing import Protocol

LONGEST_LEASE_SECONDS = 30.0
"""The most that [ha] lease_seconds may be. A lease that seems to last longer was written by another clock."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The row as it is now. `remaining_seconds` <= 0: the lease is over. `successor`: the one that may stand next.

    A lease that would last longer than LONGEST_LEASE_SECONDS is over too: the database's clock was set back.
    """

    epoch: int
    holder: str
    remaining_seconds: float
    successor: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things take, in seconds; see [ha]. A leader ends `margin_seconds` before its lease does."""

    lease_seconds: float = 1.2
    renew_seconds: float = 0.3
    margin_seconds: float = 0.1
    succession_seconds: float = 5.0


class LeaseStore(Protocol):
    """Where the row lives (pondstack.db.store.leadership). Each call is one transaction; raises Unavailable."""

    def read(self) -> Lease:
        """Return the row."""

    def take(self, expected: int, holder: str, lease_seconds: float) -> bool:
        """Set epoch `expected` + 1, `holder` and a new end if the epoch is still `expected` and the lease is over.

        Returns whether `holder` has epoch `expected` + 1 now: True also when an earlier try of this very call had
        done it before its connection was lost. `holder` is unique to one process and life.
        """

    def renew(self, epoch: int, lease_seconds: float) -> None:
        """Move the end of the lease away; raises NotLeader when `epoch` is no longer the present one."""

    def hand_over(self, epoch: int, successor: str) -> None:
        """End the lease now; `successor` ("": anybody) alone may stand for a while. Raises NotLeader.

        From here on the epoch is over for its holder too: neither a renewal nor a write of the ledger brings it back.
        """
