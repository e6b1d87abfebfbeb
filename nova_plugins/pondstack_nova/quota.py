"""Quota by unified limits (`class:CUSTOM_POND_MEMORY_MB`, `_REMOTE_MB`, `_MIRROR_MB`): what is counted, and where.

nova-api counts what a flavor names before anything is placed. A fixed share is counted there as what it becomes in
Placement: pool memory, and so much less of MEMORY_MB; so is remote memory. A swap disk counts as its mirror. An
automatic share is decided in nova-scheduler, and asked about there. Usage is Placement's in both, so what a server
really holds is what counts.
"""

from typing import Any

from keystoneauth1 import exceptions as keystone_exceptions
from nova import exception, objects
from nova.limit import placement
from nova.limit import utils as limit_utils
from openstack import exceptions as sdk_exceptions
from oslo_limit import exception as limit_exceptions

from pondstack.domain.errors import BadSpec
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.remote_share import MIRROR_CLASS
from pondstack.domain.sizing import parse_specs
from pondstack.domain.units import RESOURCE_CLASS

POOL = f"class:{RESOURCE_CLASS}"
REMOTE = f"class:{REMOTE_CLASS}"
MIRROR = f"class:{MIRROR_CLASS}"
LOCAL = "class:MEMORY_MB"

_NO_ANSWER = (
    keystone_exceptions.ClientException,
    sdk_exceptions.SDKException,
    limit_exceptions.SessionInitError,
    exception.NovaException,
    ValueError,  # oslo.limit's: Nova's endpoint is not found, or there are several
)


class OverQuota(Exception):
    """A project has no room for so much pool memory; the text has limit and usage."""


class Unknown(Exception):
    """Keystone or Placement did not tell a project's limit or usage."""


def counting() -> str:
    """Return the name of the function in nova.limit.placement that counts a request: another one before Nova 34."""
    return "_get_deltas" if hasattr(placement, "_get_deltas") else "_get_deltas_by_flavor"


def count(original: Any, asked: Any, *args: Any, **kwargs: Any) -> dict[str, int]:
    """Return what Nova counts for a request (RequestSpec, before Nova 34 Flavor), each fixed share as such."""
    deltas: dict[str, int] = original(asked, *args, **kwargs)
    flavor = asked if isinstance(asked, objects.Flavor) else asked.flavor
    try:
        specs = parse_specs((flavor.extra_specs if "extra_specs" in flavor else None) or {})
    except BadSpec:
        return deltas  # the request is refused for its specs, with their legal form
    if specs is None:
        return deltas
    shares = {POOL: specs.pool_mib, REMOTE: specs.remote_mib}
    counted = {name: mib * deltas["servers"] for name, mib in shares.items() if mib}
    disk = {MIRROR: specs.swap_mib * deltas["servers"]} if specs.swap_mib else {}
    return deltas | disk | counted | ({LOCAL: deltas.get(LOCAL, 0) - sum(counted.values())} if counted else {})


def check(ctxt: Any, project_id: str, pool_mib: int) -> None:
    """Raise OverQuota when a project may not have so much pool memory more; Unknown without an answer.

    Nothing is asked where Nova does not use unified limits.
    """
    if not limit_utils.use_unified_limits():
        return
    try:
        _enforce(ctxt, project_id, pool_mib)
    except _NO_ANSWER as error:
        raise Unknown(f"the project's quota of pool memory is not known: {error}") from error


def _enforce(ctxt: Any, project_id: str, pool_mib: int) -> None:
    try:
        placement._get_enforcer(ctxt, project_id).enforce(project_id, {POOL: pool_mib})
    except limit_exceptions.ProjectOverLimit as error:
        # Without a registered limit Nova's own options decide whether that means none at all.
        if limit_utils.should_enforce(error):
            raise OverQuota(str(error)) from error
