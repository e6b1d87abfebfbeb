"""The pools' room for new splits, and what was split and is not claimed yet.

Between a split and the slices lie Placement's claim and the build of the guest. A split that looked at the claims alone
would offer the same slices to every VM that is scheduled meanwhile, and Placement would turn the later ones away.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

PENDING_SECONDS = 5.0
"""From a split to its claim Nova's scheduler takes less; a split that is not claimed by then was not used."""


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """What one pool that a usable host reaches could give a VM, in MiB; `claimable_mib` leaves the buffer alone."""

    name: str
    total_mib: int
    claimable_mib: int


class PendingSplits:
    """The pool memory of splits that were decided lately and are not known to be claimed; thread-safe.

    Moments are seconds of one clock, the caller's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[int, float]] = {}
        self._total = 0

    def add(self, consumer_uuid: str, pool_mib: int, moment: float) -> None:
        """Note a split, in place of an older one of this consumer."""
        with self._lock:
            self._drop(consumer_uuid)
            if pool_mib:
                self._pending[consumer_uuid] = (pool_mib, moment)
                self._total += pool_mib

    def settle(self, claimed: Collection[str], read_at: float) -> None:
        """Forget what is claimed by now, and what claims that were read at `read_at` would show if it had been used."""
        oldest = read_at - PENDING_SECONDS
        with self._lock:
            for uuid in [uuid for uuid, (_, moment) in self._pending.items() if moment < oldest or uuid in claimed]:
                self._drop(uuid)

    def mib(self, besides: str = "", others: Mapping[str, int] | None = None) -> int:
        """Return the sum but for one consumer, in MiB; `others` are pending besides, by consumer."""
        with self._lock:
            known = self._total - (self._pending[besides][0] if besides in self._pending else 0)
            more = {uuid: mib for uuid, mib in (others or {}).items() if uuid not in self._pending and uuid != besides}
        return known + sum(more.values())

    def by_consumer(self) -> dict[str, int]:
        """Return all of them, in MiB."""
        with self._lock:
            return {uuid: mib for uuid, (mib, _) in self._pending.items()}

    def _drop(self, consumer_uuid: str) -> None:
        found = self._pending.pop(consumer_uuid, None)
        if found is not None:
            self._total -= found[0]
