"""Decides a split in nova-scheduler's process, by what the controller has told in the background (split_view.py).

A view that is stale decides as well: the predictor and the splits that were known last, and the room that was left of
them, are better than none, and Placement admits. Only what cannot be decided so waits, and for its budget only: the
first request of a process, a fixed share for which there seems to be no room, and the move of an instance that is not
known.
"""

from dataclasses import replace
from typing import Any

import nova.conf
from oslo_log import log as logging

from pondstack.domain.errors import PoolShortage
from pondstack.domain.known_split import KnownSplit
from pondstack.domain.sizing import Fallback, Features, Policy, Split
from pondstack.prediction.serving import (
    choose_split,
    controlled,
    flavor_key,
    kept_split,
    present_split,
    renewed_split,
    within_budget,
)
from pondstack_nova import migrations
from pondstack_nova.counters import SPLIT_FALLBACKS, STALE_SPLITS
from pondstack_nova.scheduler import split_view, used_splits
from pondstack_nova.scheduler.split_view import SplitBasis, SplitCache

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

UNSEEN_SECONDS = 15.0
"""Until a view shows what an instance was placed with: its claim, its slices, the controller's look at both."""


class NoView(Exception):
    """There is no view to decide from; `reason` is a short stable word for the counter and the record."""

    def __init__(self, reason: Fallback, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def decide(ctxt: Any, features: Features, move: migrations.Move | None, instances: int = 1) -> Split:
    """Return the split of a VM, or of each of several. Raises NoView, BadSpec, NotAligned, PoolShortage (which names
    pool and shortage).
    """
    cache = split_view.cache()
    basis, age_seconds = _basis(cache)
    known = _known(features, basis, age_seconds)
    kept = (renewed_split(features, known) if _starts_anew(move) else None) or kept_split(features, known)
    if kept is None and move is not None:
        kept = _found(ctxt, features, move, cache, basis)
    try:
        split = _choose(features, cache, basis, kept, instances)
    except PoolShortage:
        split = _choose(features, cache, _with_newest_room(cache, basis), kept, instances)
    if split.source == Fallback.MODEL_BUDGET:
        SPLIT_FALLBACKS.add(Fallback.MODEL_BUDGET)
        LOG.warning("Instance %s is placed all local (%s)", features.instance_uuid, split.reason)
    if not cache.stale(age_seconds):
        return split
    STALE_SPLITS.add(split.source)
    LOG.info("The split of instance %s rests on a view %.0f s old", features.instance_uuid, age_seconds)
    return replace(split, reason=f"{split.reason}; decided from a view {age_seconds:.0f} s old")


def may_hold(instance_uuid: str) -> bool:
    """Say whether an instance may have pool memory, by what this process knows: True where it knows nothing."""
    basis = split_view.cache().latest()[0]
    noted = used_splits.used_splits().noted(instance_uuid)
    known = [item for item in (noted, None if basis is None else basis.known.get(instance_uuid)) if item is not None]
    return basis is None or any(
        (item.present is not None and item.present.pool_mib > 0)
        or (item.remembered is not None and item.remembered.pool_mib > 0)
        for item in known
    )


def corrected(instance_uuid: str) -> bool:
    """Say whether a mitigation has taken an instance's pool memory away, or has it migrated to do so."""
    basis = split_view.cache().latest()[0]
    known = None if basis is None else basis.known.get(instance_uuid)
    return known is not None and known.corrected


def promise(spec: Any, split: Split) -> None:
    """Keep what a request was split with from others until it is claimed; 0 MiB takes an earlier promise back."""
    cache = split_view.cache()
    instances = spec.num_instances if "num_instances" in spec else 1
    cache.pending.add(spec.instance_uuid, split.pool_mib * instances, cache.clock())
    cache.risked.add(
        spec.instance_uuid, split.model_version, instances if split.pool_mib and split.model_version else 0
    )


def _starts_anew(move: migrations.Move | None) -> bool:
    """Say whether a guest is moved that does not run meanwhile: it may get another split."""
    return move is not None and move.running_local_mib is None


def _known(features: Features, basis: SplitBasis, age_seconds: float) -> KnownSplit | None:
    """Return what is known of an instance: what this process has just placed it with is newer than the view."""
    known = basis.known.get(features.instance_uuid)
    if known is None or known.present is None:
        return known
    noted = used_splits.used_splits().noted(features.instance_uuid, age_seconds + UNSEEN_SECONDS)
    return noted if noted is not None and noted.flavor_key == flavor_key(features) else known


def _basis(cache: SplitCache) -> tuple[SplitBasis, float]:
    basis, age_seconds = cache.latest()
    if basis is None:
        cache.first(CONF.pondstack.first_view_seconds)
        basis, age_seconds = cache.latest()
    if basis is None:
        raise NoView(Fallback.NO_VIEW, "pondstack-controller has not answered since nova-scheduler started")
    if age_seconds > CONF.pondstack.split_max_age_seconds:
        raise NoView(Fallback.STALE, f"pondstack-controller has not answered for {age_seconds:.0f} s")
    return basis, age_seconds


def _choose(features: Features, cache: SplitCache, basis: SplitBasis, kept: Split | None, instances: int) -> Split:
    budget = cache.risked.left(basis.budget, besides=features.instance_uuid)
    return choose_split(
        features,
        kept=kept,
        predictor=controlled(within_budget(basis.predictor, budget, instances), basis.control),
        slice_mib=basis.slice_mib,
        rooms=basis.rooms,
        pending_mib=cache.pending.mib(besides=features.instance_uuid, others=basis.pending),
    )


def _with_newest_room(cache: SplitCache, basis: SplitBasis) -> SplitBasis:
    """Return the basis with the room of this moment; without an answer, with all there could be: Placement judges."""
    newest = cache.newer(_budget_seconds())
    if newest is not None:
        return newest
    return replace(basis, rooms=tuple(replace(room, claimable_mib=room.total_mib) for room in basis.rooms))


def _found(ctxt: Any, features: Features, move: migrations.Move, cache: SplitCache, basis: SplitBasis) -> Split | None:
    """Return the split of an instance that is moved and that the view does not know: it was placed a moment ago.

    This process may have done so, the controller may know it by now, and Placement holds it in any case.
    """
    uuid = features.instance_uuid
    if features.specs.policy is not Policy.AUTO or move.resized or uuid in basis.known:
        return None
    kept = kept_split(features, used_splits.used_splits().noted(uuid))
    if kept is None and (newest := cache.newer(_budget_seconds())) is not None:
        kept = kept_split(features, newest.known.get(uuid))
    if kept is None and (pool_mib := migrations.held_pool_mib(ctxt, move, features.memory_mib)) is not None:
        kept = present_split(features.memory_mib, pool_mib)
    return kept


def _budget_seconds() -> float:
    return float(CONF.pondstack.split_timeout_ms) / 1000
