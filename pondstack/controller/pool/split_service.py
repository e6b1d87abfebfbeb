"""Splits: present, remembered or decided anew, and checked against what the rack can give.

What is remembered is what nova-scheduler says that it placed an instance with, not what it was answered: an answer may
come too late, or be over a quota.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.controller.pool.capacity import PendingSplits, claimable
from pondstack.controller.pool.returns import PoolClaims
from pondstack.db.connection.engine import Database
from pondstack.db.store import splits
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.domain.rack import RackView
from pondstack.domain.sizing import PRESENT, Features, Policy, Split, SplitPredictor, decide
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction.serving import features_from_wire, fit, flavor_key
from pondstack.rpc.wire import SplitAnswer, UsedSplit

LOG = log.getLogger(__name__)


class SplitService:
    """Decides splits. An `auto` VM keeps its split while its flavor stays; fixed and local ones follow their flavor.

    `claims` asks Placement what is claimed of our pools; without an answer the ledger alone counts.
    """

    def __init__(
        self,
        *,
        database: Database,
        ledger: Ledger,
        view: Callable[[], RackView],
        predictor: Callable[[], SplitPredictor],
        down_seconds: float,
        claims: Callable[[RackView], PoolClaims],
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._view = view
        self._predictor = predictor
        self._down = down_seconds
        self._claims = claims
        self._pending = PendingSplits()

    def split(self, data: Mapping[str, Any]) -> SplitAnswer:
        """Return the split of a VM (Features as a dict). Raises BadRequest, BadSpec, NotAligned, PoolShortage."""
        features = features_from_wire(data)
        view = self._view()
        slice_mib = max((detail.pool.slice_mib for detail in view.pools.values()), default=DEFAULT_SLICE_MIB)
        known = self._known(features) if features.specs.policy is Policy.AUTO else None
        wanted = known or decide(features, self._predictor(), slice_mib)
        split = self._fit(wanted, features, view) if wanted.pool_mib else wanted
        return SplitAnswer(
            split.local_mib, split.pool_mib, split.source, split.confidence, split.reason, slice_mib=slice_mib
        )

    def record(self, used: Sequence[UsedSplit]) -> None:
        """Remember what instances were placed with, where nothing younger is remembered. Raises BadRequest."""
        self._ledger.remember_splits([_rememberable(item) for item in used])

    def _fit(self, wanted: Split, features: Features, view: RackView) -> Split:
        """Return the split that the rack can give. Pending splits count against VMs that can do without."""
        claims = self._present_claims(view)
        pools = claimable(view, claims, self._down)
        if features.specs.policy is Policy.AUTO and wanted.source != PRESENT:
            pending_mib = self._pending.pending_mib(view, claims, features.instance_uuid)
            pools = [replace(pool, claimable_mib=max(0, pool.claimable_mib - pending_mib)) for pool in pools]
        split = fit(wanted, features, pools)
        self._pending.add(features.instance_uuid, split.pool_mib)
        return split

    def _present_claims(self, view: RackView) -> PoolClaims:
        try:
            return self._claims(view)
        except Unavailable as error:
            LOG.debug("Placement does not answer, splits rest on the ledger alone: %s", error)
            return {}

    def _known(self, features: Features) -> Split | None:
        return self._database.read(lambda session: _known(session, features))


def _rememberable(used: UsedSplit) -> RememberedSplit:
    features = features_from_wire(used.features)
    if used.local_mib < 0 or used.pool_mib < 0 or used.local_mib + used.pool_mib != features.memory_mib:
        raise BadRequest(
            f"{used.local_mib} and {used.pool_mib} MiB do not split the {features.memory_mib} MiB of instance "
            f"{features.instance_uuid}"
        )
    split = Split(used.local_mib, used.pool_mib, used.source, used.confidence, used.reason)
    return RememberedSplit(features.instance_uuid, flavor_key(features), split, max(0.0, used.age_seconds))


def _known(session: Session, features: Features) -> Split | None:
    """Return what the instance has, or was given last with this flavor; what it has comes with its former flavor."""
    uuid = features.instance_uuid
    present = None if features.resized else splits.present(session, uuid, features.memory_mib)
    return present or splits.recall(session, uuid, flavor_key(features))
