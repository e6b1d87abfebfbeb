"""controller.get_split: remembered, present or decided anew, and checked against what the rack can give."""

from collections.abc import Callable, Mapping
from typing import Any

from pondstack.controller.snapshot import unusable_hosts
from pondstack.db import splits
from pondstack.db.engine import Database
from pondstack.db.ledger import Ledger
from pondstack.db.rack_view import RackView
from pondstack.domain.model import PoolState
from pondstack.domain.sizing import Features, Policy, Split, SplitPredictor, decide
from pondstack.domain.states import SliceState
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction.serving import PoolRoom, features_from_wire, fit, flavor_key
from pondstack.rpc.wire import SplitAnswer


class Splitting:
    """Decides splits. An `auto` VM keeps its split while its flavor stays; fixed and local ones follow their flavor."""

    def __init__(
        self,
        *,
        database: Database,
        ledger: Ledger,
        view: Callable[[], RackView],
        predictor: Callable[[], SplitPredictor],
        buffer_slices: Callable[[], int],
        down_seconds: float,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._view = view
        self._predictor = predictor
        self._buffer_slices = buffer_slices
        self._down = down_seconds

    def split(self, data: Mapping[str, Any]) -> SplitAnswer:
        """Return the split of a VM (Features as a dict). Raises BadRequest, BadSpec, NotAligned, PoolShortage."""
        features = features_from_wire(data)
        view = self._view()
        slice_mib = max((detail.pool.slice_mib for detail in view.pools.values()), default=DEFAULT_SLICE_MIB)
        known = self._known(features) if features.specs.policy is Policy.AUTO else None
        wanted = known or decide(features, self._predictor(), slice_mib)
        split = fit(wanted, features, rooms(view, self._buffer_slices(), self._down))
        if features.specs.policy is Policy.AUTO and split is not known:
            self._ledger.remember_split(features.instance_uuid, flavor_key(features), split)
        return SplitAnswer(
            split.local_mib, split.pool_mib, split.source, split.confidence, split.reason, slice_mib=slice_mib
        )

    def _known(self, features: Features) -> Split | None:
        uuid = features.instance_uuid
        return self._database.read(
            lambda session: (
                splits.present(session, uuid, features.memory_mib) or splits.recall(session, uuid, flavor_key(features))
            )
        )


def rooms(view: RackView, buffer_slices: int, down_seconds: float) -> list[PoolRoom]:
    """Return the pools that are up and that a usable host reaches, with what they could give one VM."""
    unusable = unusable_hosts(view, down_seconds)
    free: dict[str, int] = {}
    for aged in view.slices:
        if aged.item.state is SliceState.FREE:
            free[aged.item.pool_uuid] = free.get(aged.item.pool_uuid, 0) + 1
    return [
        PoolRoom(
            detail.pool.name,
            detail.pool.slices_total * detail.pool.slice_mib,
            max(0, free.get(uuid, 0) - buffer_slices) * detail.pool.slice_mib,
        )
        for uuid, detail in view.pools.items()
        if detail.pool.state is PoolState.UP and any(host not in unusable for host in detail.hosts)
    ]
