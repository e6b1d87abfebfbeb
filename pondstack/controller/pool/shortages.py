"""What a start is told that finds too few free slices: that it may wait for those on their way back, or why not.

Nobody waits here. The virt driver asks again ([pondstack] shortage_wait_seconds): it holds no thread and no lock of a
controller, or of an agent, and gets the news of each moment.
"""

from collections.abc import Callable

from oslo_log import log

from pondstack.controller.pool.returns import PoolClaims, returning_soon
from pondstack.domain.errors import PondError, PoolFragmented, PoolShortage, SlicesReturning, Unavailable
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import RackView
from pondstack.domain.requests import AssignRequest
from pondstack.domain.states import SliceState
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)


class Shortages:
    """Judges shortages, and counts those of starts that Placement had admitted: misses of the free buffer."""

    def __init__(
        self,
        ledger: Ledger,
        view: Callable[[], RackView],
        claims: Callable[[RackView], PoolClaims],
        down_seconds: float,
    ) -> None:
        """`claims` asks Placement; without an answer the ledger alone counts."""
        self._ledger = ledger
        self._view = view
        self._claims = claims
        self._down = down_seconds

    def judge(self, operation_id: str, request: AssignRequest, shortage: PoolShortage) -> PondError:
        """Return what to raise. A shortage is momentary while free slices and those that come back are enough.

        A host slice is no start: it is asked for again by each round anyway.
        """
        view = self._view()
        detail = view.pools.get(request.pool_uuid)
        if detail is None or isinstance(shortage, PoolFragmented) or request.purpose is not Purpose.GUEST:
            return shortage
        claims = self._present_claims(view)
        held = claims.get(request.pool_uuid)
        if held is not None and held.get(request.consumer_uuid, 0) < request.pool_mib:
            return shortage
        wanted = request.pool_mib // detail.pool.slice_mib
        self._ledger.free_buffers.miss(operation_id, request, wanted)
        free = sum(
            aged.item.state is SliceState.FREE and aged.item.pool_uuid == request.pool_uuid for aged in view.slices
        )
        soon = returning_soon(view, request.pool_uuid, claims, self._down)
        LOG.info("%s (%s): %d more are on their way back", shortage, request.consumer_uuid, soon)
        if free + soon < wanted:
            return PoolShortage(f"{shortage} ({soon} more are on their way back)")
        return SlicesReturning(
            f"pool {detail.pool.name}: {wanted} slices are wanted, {free} are free and {soon} on their way back"
        )

    def _present_claims(self, view: RackView) -> PoolClaims:
        try:
            return self._claims(view)
        except Unavailable as error:
            LOG.debug("Placement does not answer, the ledger alone tells what comes back: %s", error)
            return {}
