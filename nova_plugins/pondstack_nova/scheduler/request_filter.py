"""Sizes the Placement request of a VM: MEMORY_MB = local, a suffixed group = pool, another one = remote memory.

By the `pond:` specs of its flavor, or for a plain flavor by the default policy (defaults.py). Appended to Nova's
request filters when PondFilter's module loads. It edits the in-memory copy of the flavor only, which neither the
database nor the API ever sees. It runs again on each move; what each instance was placed with is remembered
(used_splits.py), and a live migration keeps the split that the guest runs with. It decides in this process
(split_decision.py): no answer of the controller is waited for on the way of a boot. The group is always suffixed: Nova
adds `in_tree` of a forced host to the un-numbered group, where a sharing provider fails.
"""

from dataclasses import replace
from typing import Any

import nova.conf
from nova import exception
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging

from pondstack.domain.errors import BadSpec, PondError
from pondstack.domain.project_settings import ProjectSettings
from pondstack.domain.sizing import NAMESPACE, PRESENT, Fallback, Features, Policy, PondSpecs, Split
from pondstack_nova import flavors, migrations, pins, quota
from pondstack_nova.counters import SPLIT_FALLBACKS
from pondstack_nova.scheduler import defaults, groups, remote_request, retry, snapshot, split_decision, used_splits

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def pond_split(ctxt: Any, spec: Any) -> bool:
    """Split one request; True when it was sized. `ctxt` and `spec` are Nova's RequestContext and RequestSpec.

    Raises RequestFilterFailed (Nova: "No valid host was found. ...") that names pool and shortage, or the wrong spec.
    """
    original = _unsized(spec)
    used_splits.put_on(spec, None)
    plain = not any(key.startswith(NAMESPACE) for key in original)
    defaults.mark(spec, plain=plain)
    specs = None if plain else _specs(spec, original)
    remote_mib, swap_mib = (specs.remote_mib, specs.swap_mib) if specs is not None else (0, 0)
    if specs is not None:
        remote_request.check(ctxt, spec, specs)
    split = _split_of(ctxt, spec, specs, original)
    pool_mib = split.pool_mib if split is not None else 0
    if not pool_mib and not remote_mib and not swap_mib:
        return False
    spec.flavor.extra_specs = remote_request.size(spec.flavor.memory_mb, pool_mib, specs, original)
    spec._pondstack_unsized = original
    LOG.debug(
        "Instance %s: %s MiB local, %d MiB pool, %d MiB remote, a swap disk of %d MiB (%s)",
        spec.instance_uuid,
        spec.flavor.extra_specs.get(flavors.LOCAL_KEY, spec.flavor.memory_mb),
        pool_mib,
        remote_mib,
        swap_mib,
        f"{split.source}: {split.reason}" if split is not None else "the flavor leaves no choice",
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


def _unsized(spec: Any) -> dict[str, str]:
    """Return the flavor's own extra specs; a second pass over the same request starts from them again."""
    original = getattr(spec, "_pondstack_unsized", None)
    if original is None:
        return dict((spec.flavor.extra_specs if "extra_specs" in spec.flavor else None) or {})
    spec._pondstack_unsized = None
    spec.flavor.extra_specs = original
    return dict(original)


def _specs(spec: Any, extra_specs: dict[str, str]) -> PondSpecs | None:
    """Return the `pond:` specs of a request's flavor; raises RequestFilterFailed."""
    try:
        specs = flavors.check(
            extra_specs, spec.flavor.memory_mb, CONF.pondstack.max_remote_percent, CONF.pondstack.max_swap_percent
        )
        flavors.check_numa(specs, spec.numa_topology if "numa_topology" in spec else None)
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    return specs


def _split_of(ctxt: Any, spec: Any, specs: PondSpecs | None, extra_specs: dict[str, str]) -> Split | None:
    """Return the split between pool and the rest; None where it is not asked for one."""
    if split_decision.corrected(spec.instance_uuid):
        LOG.debug("Instance %s gets no pool memory: a mitigation takes it away", spec.instance_uuid)
        return None
    if specs is None:
        return _split_by_default(ctxt, spec, extra_specs)
    return _split_by_specs(ctxt, spec, specs)


def _split_by_specs(ctxt: Any, spec: Any, specs: PondSpecs) -> Split | None:
    """Return the split of a flavor with `pond:` specs; None where they guarantee that none of it is pool memory."""
    if specs.policy is Policy.LOCAL:
        return None
    if specs.policy is Policy.AUTO:
        settings = defaults.settings_of(spec, first_view_seconds=CONF.pondstack.first_view_seconds)
        specs = remote_request.leave_local(_capped(specs, settings), spec.flavor.memory_mb)
    return _split(ctxt, spec, specs)


def _split_by_default(ctxt: Any, spec: Any, extra_specs: dict[str, str]) -> Split | None:
    """Return the split of a flavor without `pond:` specs; None where it is Nova's alone."""
    seconds = min(CONF.pondstack.first_view_seconds, defaults.FIRST_SETTINGS_SECONDS)
    settings = defaults.settings_of(spec, first_view_seconds=seconds)
    default = defaults.of_request(spec, settings)
    if not default.pooled:
        return _running(ctxt, spec)
    obstacle = flavors.obstacle(extra_specs, spec.numa_topology if "numa_topology" in spec else None)
    return _split(ctxt, spec, _capped(PondSpecs(Policy.AUTO), settings), default.origin, obstacle)


def _running(ctxt: Any, spec: Any) -> Split | None:
    """Return the split of a guest that got pool memory while a default policy said so, and that is moved live."""
    if not split_decision.may_hold(spec.instance_uuid):
        return None
    move = migrations.find(ctxt, spec)
    return None if move is None or move.running_local_mib is None else _keep(spec, move.running_local_mib)


def _capped(specs: PondSpecs, settings: ProjectSettings) -> PondSpecs:
    if settings.max_pool_percent is None:
        return specs
    return replace(specs, max_pool_percent=min(specs.max_pool_percent, settings.max_pool_percent))


def _split(
    ctxt: Any, spec: Any, specs: PondSpecs, default_by: defaults.Origin | None = None, obstacle: str | None = None
) -> Split:
    """Return the split to place a request with, and leave it on the request.

    `default_by`: who has a plain flavor split at all; `obstacle`: why it cannot have pool memory.
    """
    move = migrations.find(ctxt, spec)
    if move is not None and move.running_local_mib is not None:
        return _keep(spec, move.running_local_mib)  # nothing new: what is remembered says why
    features = _features(spec, specs, resized=move is not None and move.resized)
    split = _without_pool(spec, specs, obstacle)
    if split is None:
        split = _decide(ctxt, spec, features, move)
        if split.pool_mib:
            split = _apart(spec, specs, split)
        split_decision.promise(spec, split)
    if default_by is not None:
        split = _said_by(split, default_by)
    used_splits.put_on(spec, used_splits.Decision(features, split, default_by))
    return split


def _without_pool(spec: Any, specs: PondSpecs, obstacle: str | None) -> Split | None:
    """Return the split of a VM that can have no pool memory: as it must be, so nothing is counted; None for others.

    Raises RequestFilterFailed where the flavor fixes the pool memory.
    """
    memory_mib, pin = spec.flavor.memory_mb, pins.of_request(spec)
    if obstacle is not None:
        return Split(memory_mib, 0, Fallback.UNFIT, 1.0, f"all local: {obstacle}")
    try:
        pins.check(specs, pin)
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    if pin is None:
        return None
    return Split(memory_mib, 0, Fallback.PINNED, 1.0, f"all local: {pin} pins or encrypts the memory")


def _said_by(split: Split, origin: defaults.Origin) -> Split:
    """Return a split whose reason says who had the VM split; a split that is kept may say so already."""
    told = f"; the flavor is plain, {origin} says auto"
    return split if told in split.reason else replace(split, reason=split.reason + told)


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
        return _fall_back(spec, Fallback.NO_ROOM, "no host that it may use has both its local and its pool memory free")
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


def _fall_back(spec: Any, reason: Fallback, detail: object) -> Split:
    """Count and log that a VM is all local for want of a split that may be used; return that."""
    SPLIT_FALLBACKS.add(reason)
    LOG.warning("Instance %s is placed all local (%s): %s", spec.instance_uuid, reason, detail)
    return Split(spec.flavor.memory_mb, 0, reason, 1.0, f"all local: {detail}")
