"""Serving a split: what comes over RPC, the predictor, and what the rack can give. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pondstack.domain.errors import BadRequest, PoolShortage
from pondstack.domain.sizing import Features, Policy, PondSpecs, Split


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """What one pool that a usable host reaches could give a VM, in MiB; `claimable_mib` leaves the buffer alone."""

    name: str
    total_mib: int
    claimable_mib: int


def features_from_wire(data: Mapping[str, Any]) -> Features:
    """Build the features of a VM; unknown fields (a newer sender's) are dropped. Raises BadRequest."""
    try:
        given = dict(data.get("specs") or {})
        specs = {item.name: given[item.name] for item in fields(PondSpecs) if item.name in given}
        if "policy" in specs:
            specs["policy"] = Policy(specs["policy"])
        known = {item.name: data[item.name] for item in fields(Features) if item.name in data and item.name != "specs"}
        return Features(**known, specs=PondSpecs(**specs))
    except (TypeError, ValueError) as error:
        raise BadRequest(f"these are no features of a VM: {error}") from error


def flavor_key(features: Features) -> str:
    """Return what changes when an instance gets another flavor: its size and its specs."""
    text = json.dumps([features.memory_mib, features.vcpus, asdict(features.specs)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def fit(split: Split, features: Features, rooms: Sequence[PoolRoom]) -> Split:
    """Return the split if the rack can give it; a new `auto` VM becomes all local when it cannot.

    Raises PoolShortage, which names pool and shortage, where the pool memory is not negotiable: fixed by the flavor, or
    what a running guest has.
    """
    if split.pool_mib == 0 or any(room.claimable_mib >= split.pool_mib for room in rooms):
        return split
    shortage = describe_shortage(split.pool_mib, rooms)
    if features.specs.policy is Policy.AUTO and split.source != "present":
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
