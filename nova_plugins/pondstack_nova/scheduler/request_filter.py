"""Sizes the Placement request of a VM with `pond:` specs: MEMORY_MB = local, a suffixed group = pool.

Appended to Nova's request filters when PondFilter's module loads. It edits the in-memory copy of the flavor only, which
neither the database nor the API ever sees. It runs again on each move; the service remembers the split by instance, and
a live migration keeps the one that the guest runs with. The group is always suffixed: Nova adds `in_tree` of a forced
host to the un-numbered group, where a sharing provider fails.
"""

from dataclasses import asdict
from typing import Any

import nova.conf
from nova import exception
from nova.scheduler import request_filter as nova_request_filter
from oslo_log import log as logging

from pondstack.domain.errors import BadRequest, BadSpec, PondError, PoolShortage
from pondstack.domain.sizing import Features, Policy, PondSpecs
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.rpc.wire import SplitAnswer
from pondstack_nova import controller_client, flavors, migrations, quota
from pondstack_nova.counters import SPLIT_FALLBACKS

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

PRESENT = "present"
"""Source of a split that the instance has already: it is moved."""


def pond_split(ctxt: Any, spec: Any) -> bool:
    """Split one request; True when it was sized. `ctxt` and `spec` are Nova's RequestContext and RequestSpec.

    Raises RequestFilterFailed (Nova: "No valid host was found. ...") that names pool and shortage, or the wrong spec.
    """
    extra_specs = spec.flavor.extra_specs if "extra_specs" in spec.flavor else {}
    if not any(key.startswith("pond:") for key in extra_specs or {}):
        return False
    # A second pass over the same spec starts from the flavor's own specs again.
    original = {key: value for key, value in extra_specs.items() if not _is_ours(key, extra_specs)}
    try:
        specs = flavors.check(original, spec.flavor.memory_mb)
        flavors.check_numa(specs, spec.numa_topology if "numa_topology" in spec else None)
    except BadSpec as error:
        raise exception.RequestFilterFailed(error.message) from error
    spec.flavor.extra_specs = original
    if specs is None or specs.policy is Policy.LOCAL:
        return False
    move = migrations.find(ctxt, spec)
    running = move.running_local_mib if move is not None else None
    if running is not None:
        answer: SplitAnswer | None = _keep(spec, running)
    else:
        answer = _ask(ctxt, spec, _features(spec, specs, resized=move is not None and move.resized))
    if answer is None or answer.pool_mib == 0:
        return False
    spec.flavor.extra_specs = original | {
        flavors.LOCAL_KEY: str(answer.local_mib),
        flavors.POOL_KEY: str(answer.pool_mib),
    }
    LOG.debug(
        "Instance %s: %d MiB local, %d MiB pool (%s: %s)",
        spec.instance_uuid,
        answer.local_mib,
        answer.pool_mib,
        answer.source,
        answer.reason,
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


def _ask(ctxt: Any, spec: Any, features: Features) -> SplitAnswer | None:
    """Return the service's split; None (logged and counted) without one that may be used: the VM is all local then."""
    budget_seconds = CONF.pondstack.split_timeout_ms / 1000
    try:
        answer = controller_client.controller().get_split(asdict(features), budget_seconds)
    except controller_client.NoAnswer as error:
        return _fall_back(spec, error.reason, error)
    except (PoolShortage, BadRequest) as error:
        raise exception.RequestFilterFailed(error.message) from error
    except PondError as error:
        return _fall_back(spec, "refused", error)
    memory_mib = spec.flavor.memory_mb
    if answer.pool_mib < 0 or answer.local_mib < 1 or answer.local_mib + answer.pool_mib != memory_mib:
        return _fall_back(spec, "malformed", f"{answer} does not split {memory_mib} MiB")
    # nova-api has counted a fixed share, and what a server holds already is in its project's usage.
    if features.specs.policy is Policy.AUTO and answer.pool_mib and answer.source != PRESENT:
        return _within_quota(ctxt, spec, answer)
    return answer


def _within_quota(ctxt: Any, spec: Any, answer: SplitAnswer) -> SplitAnswer | None:
    """Return the split where the project's quota has room for it, for all instances of the request; else None."""
    instances = spec.num_instances if "num_instances" in spec else 1
    try:
        quota.check(ctxt, spec.project_id, answer.pool_mib * instances)
    except quota.OverQuota as error:
        return _fall_back(spec, "over_quota", error)
    except quota.Unknown as error:
        return _fall_back(spec, "quota_unknown", error)
    return answer


def _keep(spec: Any, local_mib: int) -> SplitAnswer:
    """Return the split that a running guest has."""
    pool_mib = spec.flavor.memory_mb - local_mib
    return SplitAnswer(local_mib, pool_mib, "running", 1.0, "a running guest keeps its split", DEFAULT_SLICE_MIB)


def _fall_back(spec: Any, reason: str, detail: object) -> SplitAnswer | None:
    """Count and log that a VM is all local for want of a split that may be used."""
    SPLIT_FALLBACKS.add(reason)
    LOG.warning("Instance %s is placed all local (%s): %s", spec.instance_uuid, reason, detail)
    return None
