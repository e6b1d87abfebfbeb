"""Best-effort loans (swap disks) give way to guaranteed ones that find too few free buffers (Zombieland, section 4.4).

The ledger asks their buffers back; the settler has the borrowers let go, whose mirrors serve the pages then, and the
lenders end the keys. Only then are the buffers free for who waits.
"""

import time
from collections.abc import Callable, Mapping

from oslo_log import log

from pondstack.controller.lending.lenders import Lenders
from pondstack.domain.requests import BorrowRequest
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)

PATIENCE_SECONDS = 10.0
"""So long after its last try a guaranteed loan counts as waiting."""


class BestEffortLoans:
    """Of one leader; the next one is asked again. `gave_way` counts buffers.

    Who swaps asks again soon for what it has let go of, and must leave it to those that wait.
    """

    def __init__(
        self,
        ledger: Ledger,
        lenders: Lenders,
        gave_way: Callable[[int], object] = lambda _buffers: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger, self._lenders, self._gave_way, self._clock = ledger, lenders, gave_way, clock
        self._waiting: dict[str, float] = {}

    @property
    def held_back(self) -> bool:
        """Whether guaranteed loans wait for what comes back."""
        now = self._clock()
        return any(now - at < PATIENCE_SECONDS for at in tuple(self._waiting.values()))

    def way(self, host: str, buffer_mib: int) -> tuple[int, int]:
        """Return how many buffers come back anyway for a loan of a host, and how many can give way besides."""
        return self._ledger.loans.way(host, buffer_mib)

    def wait(self, operation_id: str) -> None:
        """Note that an operation waits for what becomes free, of whomever: who swaps must leave it."""
        now = self._clock()
        others = {key: at for key, at in self._waiting.items() if now - at < PATIENCE_SECONDS}
        self._waiting = {**others, operation_id: now}

    def give_way(self, wanted: BorrowRequest, buffer_mib: int, lends: Mapping[str, int]) -> bool:
        """Have them give way to a loan, for what it lacks besides what hosts are to lend in all (`lends`, in MiB).

        False when even so there would be too few: then nothing changes. Raises NotLeader, Unavailable.
        """
        reason = f"a guaranteed loan of host {wanted.host} needs it"
        coming, asked = self._lenders.make_way(wanted, buffer_mib, lends, reason)
        if asked:
            LOG.info("%d buffers of best-effort loans are asked back: %s", asked, reason)
            self._gave_way(asked)
        if coming:
            self._lenders.settle()
        return coming > 0

    def served(self, operation_id: str) -> None:
        """An operation waits no more."""
        self._waiting.pop(operation_id, None)
