"""Serving a split: what comes over RPC, the predictor, and what the rack can give. Pure.

The one part of pondstack.prediction that nova-scheduler imports: it decides in its own process (SplitView on the wire).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from pondstack.domain.allowance import Allowance
from pondstack.domain.conform import check_present
from pondstack.domain.errors import BadRequest, PoolShortage
from pondstack.domain.known_split import KnownSplit
from pondstack.domain.room import PoolRoom
from pondstack.domain.sizing import (
    PRESENT,
    Fallback,
    Features,
    Policy,
    PondSpecs,
    Split,
    SplitPredictor,
    StaticShare,
    corrected_split,
    decide,
)
from pondstack.prediction import flow
from pondstack.prediction.control import Control, WithControl
from pondstack.prediction.flow import Flow
from pondstack.prediction.former import STATIC, UNTOUCHED
from pondstack.prediction.untouched_table import UntouchedTable


def features_from_wire(data: Mapping[str, Any]) -> Features:
    """Build the features of a VM; unknown fields (a newer sender's) are dropped. Raises BadRequest."""
    try:
        given = dict(data.get("specs") or {})
        specs = {item.name: given[item.name] for item in fields(PondSpecs) if item.name in given}
        if "policy" in specs:
            specs["policy"] = Policy(specs["policy"])
        known = {item.name: data[item.name] for item in fields(Features) if item.name in data and item.name != "specs"}
        check_present(Features, known)
        check_present(PondSpecs, specs)
        return Features(**known, specs=PondSpecs(**specs))
    except (TypeError, ValueError) as error:
        raise BadRequest(f"these are no features of a VM: {error}") from error


def flavor_key(features: Features) -> str:
    """Return what changes when an instance gets another flavor: its size and its specs."""
    specs = asdict(features.specs)
    if not features.specs.remote_mib:
        del specs["remote_mib"]  # what was remembered before there was remote memory keeps its key
    del specs["swap_mib"]  # it is none of the memory that is split
    text = json.dumps([features.memory_mib, features.vcpus, specs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def static_predictor(percent: int) -> dict[str, Any]:
    """Return what make_predictor() makes a StaticShare of."""
    return {"kind": STATIC, "percent": percent}


def version_of(about: Mapping[str, Any]) -> str:
    """Return what tells a predictor from all others; of one that is described in a few bytes "", it is sent always."""
    return str(about["version"]) if about.get("kind") == flow.KIND else ""


def within_budget(predictor: SplitPredictor, allowance: Allowance | None, instances: int = 1) -> SplitPredictor:
    """Return the predictor, held to what its models may still risk for so many instances; None: no model decides."""
    if allowance is None or not isinstance(predictor, Flow):
        return predictor
    return predictor.within(lambda version: allowance.allows(version, instances))


def controlled(predictor: SplitPredictor, control: Mapping[str, Any] | None) -> SplitPredictor:
    """Return the predictor that leaves the control group all local, as SplitView.control describes it; None, {}: none.

    Around within_budget(): who is in the group risks nothing.
    """
    return WithControl(Control.from_wire(control), predictor) if control else predictor


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], SplitPredictor]] = {
    flow.KIND: lambda about: Flow(about, StaticShare(int(about["percent"]))),
    STATIC: lambda about: StaticShare(int(about["percent"])),
    UNTOUCHED: lambda about: UntouchedTable(about, StaticShare(int(about["percent"]))),
}


def make_predictor(about: Mapping[str, Any]) -> SplitPredictor:
    """Build the predictor that a controller describes by its `kind` and what that kind needs. Raises BadRequest."""
    kind = str(about.get("kind"))
    if kind not in _MAKERS:
        raise BadRequest(f"a predictor of kind {kind!r} is unknown here; known: {', '.join(sorted(_MAKERS))}")
    try:
        return _MAKERS[kind](about)
    except (KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"the predictor of kind {kind!r} lacks what it needs: {error!r} ({dict(about)})") from error


def kept_split(features: Features, known: KnownSplit | None) -> Split | None:
    """Return the split that an `auto` VM keeps: what it has now, or was placed with last with this flavor.

    One whose pool memory a mitigation took away stays all local, whatever its flavor. None for one that is new, that
    fell back, or that is another by its flavor.
    """
    if known is not None and known.corrected:
        return corrected_split(features.memory_mib)
    if known is None or features.specs.policy is not Policy.AUTO:
        return None
    has = known.present
    if (
        has is not None
        and not features.resized
        and has.guest_mib == features.memory_mib
        and has.pool_mib < has.guest_mib
    ):
        return present_split(features.memory_mib, has.pool_mib)
    last = known.remembered
    if last is None or features.resized or last.source in _FALLBACKS:
        return None
    if last.local_mib + last.pool_mib != features.memory_mib:
        return None
    # Without a key: what was found in Placement, and nobody told of what flavor.
    return last if known.flavor_key in ("", flavor_key(features)) else None


_FALLBACKS = frozenset(map(str, Fallback))


def present_split(memory_mib: int, pool_mib: int) -> Split:
    """Return the split of an instance that has so much pool memory now."""
    reason = f"the instance runs with {pool_mib} MiB of pool memory and keeps it"
    return Split(memory_mib - pool_mib, pool_mib, source=PRESENT, confidence=1.0, reason=reason)


RENEWED = "repredicted"
"""Source of a split that was predicted again from the VM's own past, and taken at a move."""


def renewed_split(features: Features, known: KnownSplit | None) -> Split | None:
    """Return the split that an `auto` VM gets at a cold move in place of the one that it has; None: it keeps that."""
    if known is None or known.renewed_mib is None or known.corrected:
        return None
    if features.specs.policy is not Policy.AUTO or features.resized:
        return None
    most = features.memory_mib * features.specs.max_pool_percent // 100
    if known.renewed_mib >= features.memory_mib or known.renewed_mib > most:
        return None
    reason = f"its own past left {known.renewed_mib} MiB untouched: predicted again, taken at its move"
    return Split(features.memory_mib - known.renewed_mib, known.renewed_mib, RENEWED, 1.0, reason)


def choose_split(
    features: Features,
    *,
    kept: Split | None,
    predictor: SplitPredictor,
    slice_mib: int,
    rooms: Sequence[PoolRoom],
    pending_mib: int,
) -> Split:
    """Return the split of a VM that the rack can give, as far as is known; Placement is the admission.

    `pending_mib`: of others' splits that nobody has claimed yet. It counts against VMs that can do without.
    Raises BadSpec, NotAligned, PoolShortage.
    """
    wanted = kept or decide(features, predictor, slice_mib)
    if wanted.pool_mib == 0:
        return wanted
    if features.specs.policy is Policy.AUTO and wanted.source != PRESENT:
        rooms = [replace(room, claimable_mib=max(0, room.claimable_mib - pending_mib)) for room in rooms]
    return fit(wanted, features, rooms)


def fit(split: Split, features: Features, rooms: Sequence[PoolRoom]) -> Split:
    """Return the split if the rack can give it; a new `auto` VM becomes all local when it cannot.

    Raises PoolShortage, which names pool and shortage, where the pool memory is not negotiable: fixed by the flavor, or
    what a running guest has.
    """
    if split.pool_mib == 0 or any(room.claimable_mib >= split.pool_mib for room in rooms):
        return split
    shortage = describe_shortage(split.pool_mib, rooms)
    if features.specs.policy is Policy.AUTO and split.source != PRESENT:
        reason = f"all local: {shortage}"
        return Split(features.memory_mib, 0, source=split.source, confidence=split.confidence, reason=reason)
    raise PoolShortage(shortage)


def describe_shortage(pool_mib: int, rooms: Sequence[PoolRoom]) -> str:
    """Return why no pool gives `pool_mib` MiB, for the tenant's "No valid host" and the operator."""
    if not rooms:
        return f"{pool_mib} MiB of pool memory are wanted and no usable host reaches a pool"
    largest = max(rooms, key=lambda room: (room.total_mib, room.name))
    if largest.total_mib < pool_mib:
        return (
            f"{pool_mib} MiB of pool memory are wanted, the largest pool {largest.name} has {largest.total_mib} MiB in "
            f"all ({pool_mib - largest.total_mib} MiB short)"
        )
    freest = max(rooms, key=lambda room: (room.claimable_mib, room.name))
    return (
        f"{pool_mib} MiB of pool memory are wanted, pool {freest.name} has {freest.claimable_mib} MiB free of "
        f"{freest.total_mib} MiB ({pool_mib - freest.claimable_mib} MiB short)"
    )
