"""Since when nobody claims swap disks: what lenders had no room for is in no ledger, so it is noted here."""

import time
from collections.abc import Callable, Mapping

from pondstack.controller.reconcile.observation import Disk


class UnclaimedDisks:
    """As one leader sees it; the next one starts anew, so that a disk is ended late rather than early."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Disk, float] = {}

    def note(self, claimed: Mapping[Disk, bool]) -> None:
        """Note which disks there are, and which of them somebody claims."""
        now = self._clock()
        self._since = {disk: self._since.get(disk, now) for disk, has_claim in claimed.items() if not has_claim}

    def seconds(self) -> dict[Disk, float]:
        """Return for how long nobody has claimed those that are not."""
        now = self._clock()
        return {disk: now - since for disk, since in self._since.items()}
