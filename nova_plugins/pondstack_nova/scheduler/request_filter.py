"""Sizes the Placement request of a VM with `pond:` specs: MEMORY_MB = local, a suffixed group = pool.

Appended to Nova's request filters when PondFilter's module loads. It edits the in-memory copy of the flavor only, which
neither the database nor the API ever sees. It runs again on each move; what each instance was placed with is remembered
(used_splits.py), and a live migration keeps the split that the guest runs with. It decides in this process
(split_decision.py): no answer of the controller is waited for on the way of a boot. The group is always suffixed: Nova
adds `in_tree` of a forced host to the un-numbered group, where a sharing provider fails.
"""

from typing import Any

from nova import exception
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging

from pondstack.domain.errors import BadSpec, PondError
from pondstack.domain.sizing import PRESENT, Fallback, Features, Policy, PondSpecs, Split
from pondstack_nova import flavors, migrations, pins, quota
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_nova.scheduler import groups, retry, snapshot, split_decision, used_splits

LOG = logging.getLogger(__name__)


def pond_split(ctxt: Any, spec: Any) -> bool:
    """Split one request; True when it was sized. `ctxt` and `spec` are Nova's RequestContext and RequestSpec.

    Raises RequestFilterFailed (Nova: "No valid host was found. ...") that names pool and shortage, or the wrong spec.
    """
    extra_specs = spec.flavor.extra_specs if "extra_specs" in spec.flavor else {}
    if not any(key.startswith("pond:") for key in extra_specs or {}):
        return False
    # A second pass over the same spec starts from the flavor's own specs again.
    original = {key: value for key, value in extra_specs.items() if not _is_ours(key, extra_specs)}
    used_splits.put_on(spec, None)
    try:
        specs = flavors.check(original, spec.flavor.memory_mb)
        flavors.check_numa(specs, spec.numa_topology if "numa_topology" in spec else None)
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    spec.flavor.extra_specs = original
    if specs is None or specs.policy is Policy.LOCAL:
        return False
    split = _split(ctxt, spec, specs)
    if split.pool_mib == 0:
        return False
    spec.flavor.extra_specs = original | {
        flavors.LOCAL_KEY: str(split.local_mib),
        flavors.POOL_KEY: str(split.pool_mib),
    }
    LOG.debug(
        "Instance %s: %d MiB local, %d MiB pool (%s: %s)",
        spec.instance_uuid,
        split.local_mib,
        split.pool_mib,
        split.source,
        split.reason,
    )
    return True


def install() -> None:
    """Append the filter to Nova's list, once."""
    if pond_split not in nova_request_filter.ALL_REQUEST_FILTERS:
        nova_request_filter.ALL_REQUEST_FILTERS.append(pond_split)


def pool_mib_of(spec: Any) -> int:
    """Return the pool memory that a RequestSpec asks for in MiB, 0 for all local."""
    extra_specs = spec.flavor.extra_specs if "extra_specs" in spec.flavor else {}
    return int((extra_specs or {}).get(flavors.POOL_KEY, 0))


def _is_ours(key: str, extra_specs: dict[str, str]) -> bool:
    return flavors.POOL_KEY in extra_specs and key in (flavors.POOL_KEY, flavors.LOCAL_KEY)


def _split(ctxt: Any, spec: Any, specs: PondSpecs) -> Split:
    """Return the split to place a request with, and leave it on the request."""
    move = migrations.find(ctxt, spec)
    if move is not None and move.running_local_mib is not None:
        return _keep(spec, move.running_local_mib)  # nothing new: what is remembered says why
    features = _features(spec, specs, resized=move is not None and move.resized)
    pin = pins.of_request(spec)
    try:
        pins.check(specs, pin)
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    split = _decide(ctxt, spec, features, move) if pin is None else _all_local(spec, pin)
    if split.pool_mib:
        split = _apart(spec, specs, split)
    if pin is None:
        split_decision.promise(spec, split)
    used_splits.put_on(spec, used_splits.Decision(features, split))
    return split


def _features(spec: Any, specs: PondSpecs, resized: bool) -> Features:
    image = spec.image if "image" in spec else None
    return Features(
        instance_uuid=spec.instance_uuid,
        memory_mib=spec.flavor.memory_mb,
        vcpus=spec.flavor.vcpus,
        project_id=spec.project_id or "",
        user_id=(spec.user_id if "user_id" in spec else None) or "",
        flavor_name=spec.flavor.name,
        image_uuid=(image.id if image is not None and "id" in image else None) or "",
        specs=specs,
        resized=resized,
    )


def _decide(ctxt: Any, spec: Any, features: Features, move: migrations.Move | None) -> Split:
    """Return the split by the flavor, what is known and the room; all local (logged, counted) without a view."""
    if retry.goes_all_local(spec):
        return _fall_back(spec, Fallback.NO_ROOM, "no host has both its local and its pool memory free")
    try:
        split = split_decision.decide(ctxt, features, move, spec.num_instances if "num_instances" in spec else 1)
    except split_decision.NoView as error:
        return _fall_back(spec, error.reason, error)
    except PondError as error:
        raise exception.RequestFilterFailed(error.message) from error
    # nova-api has counted a fixed share, and what a server holds already is in its project's usage.
    if features.specs.policy is Policy.AUTO and split.pool_mib and split.source != PRESENT:
        return _within_quota(ctxt, spec, split)
    return split


def _within_quota(ctxt: Any, spec: Any, split: Split) -> Split:
    """Return the split where the project's quota has room for it, for all instances of the request; else all local."""
    instances = spec.num_instances if "num_instances" in spec else 1
    try:
        quota.check(ctxt, spec.project_id, split.pool_mib * instances)
    except quota.OverQuota as error:
        return _fall_back(spec, Fallback.OVER_QUOTA, error)
    except quota.Unknown as error:
        return _fall_back(spec, Fallback.QUOTA_UNKNOWN, error)
    return split


def _keep(spec: Any, local_mib: int) -> Split:
    """Return the split that a running guest has."""
    pool_mib = spec.flavor.memory_mb - local_mib
    return Split(local_mib, pool_mib, "running", 1.0, "a running guest keeps its split")


def _apart(spec: Any, specs: PondSpecs, split: Split) -> Split:
    """Return the split where a pool without members of the VM's anti-affinity group has room; else all local.

    Raises RequestFilterFailed where the flavor fixes the pool memory.
    """
    spread = groups.look(spec)
    if not spread.hard or groups.room_outside(snapshot.cache().latest()[0], spread, split.pool_mib):
        return split
    reason = "each pool with room has memory of another member of the anti-affinity group"
    if specs.policy is Policy.FIXED:
        raise exception.RequestFilterFailed(f"{reason}, and {split.pool_mib} MiB of pool memory are wanted")
    return Split(spec.flavor.memory_mb, 0, Fallback.ANTI_AFFINITY, 1.0, f"all local: {reason}")


def _all_local(spec: Any, pin: str) -> Split:
    """Return the split of a VM with policy auto whose memory is pinned: as it must be, so nothing is counted."""
    return Split(spec.flavor.memory_mb, 0, Fallback.PINNED, 1.0, f"all local: {pin} pins or encrypts the memory")


def _fall_back(spec: Any, reason: Fallback, detail: object) -> Split:
    """Count and log that a VM is all local for want of a split that may be used; return that."""
    SPLIT_FALLBACKS.add(reason)
    LOG.warning("Instance %s is placed all local (%s): %s", spec.instance_uuid, reason, detail)
    return Split(spec.flavor.memory_mb, 0, reason, 1.0, f"all local: {detail}")
