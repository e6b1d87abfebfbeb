"""A server of policy auto that gets no host with its pool memory is tried once more, all local.

The scheduler's view of the room is a hint. Several schedulers may promise the last slices to a server each, and the
pool with room may be one that only full hosts reach; Placement, which admits, then refuses a server that could have
started all local. Nova ends such a request, so we wrap its entry. There a request gets to know Nova's aggregates, too.
"""

import functools
from collections.abc import Callable
from typing import Any

from nova import exception
from nova.scheduler import manager
from oslo_log import log as logging

from pondstack.domain.sizing import PRESENT, Policy
from pondstack_nova.scheduler import aggregates, used_splits

LOG = logging.getLogger(__name__)


def goes_all_local(spec: Any) -> bool:
    """Say whether a request is tried again without pool memory."""
    return bool(getattr(spec, "_pondstack_all_local", False))


def install() -> None:
    """Wrap SchedulerManager.select_destinations, once."""
    present = manager.SchedulerManager.select_destinations
    if not hasattr(present, "_pondstack_wraps"):
        manager.SchedulerManager.select_destinations = wrap(present)


def wrap(select: Callable[..., Any]) -> Callable[..., Any]:
    """Return `select`, which is called again where its request may be all local."""

    @functools.wraps(select)
    def select_destinations(*arguments: Any, **named: Any) -> Any:
        spec = named.get("spec_obj")
        if spec is not None and arguments:
            aggregates.see(spec, arguments[0])
        try:
            return select(*arguments, **named)
        except Exception as error:
            if spec is None or not _no_valid_host(error) or not _may_be_all_local(spec):
                raise
        LOG.info("Instance %s finds no host with its pool memory and is tried all local", spec.instance_uuid)
        spec._pondstack_all_local = True
        try:
            return select(*arguments, **named)
        finally:
            spec._pondstack_all_local = False

    select_destinations._pondstack_wraps = True  # type: ignore[attr-defined]
    return select_destinations


def _no_valid_host(error: Exception) -> bool:
    # oslo.messaging wraps the exceptions that a method is expected to raise.
    cause = error.exc_info[1] if hasattr(error, "exc_info") else error
    return isinstance(cause, exception.NoValidHost)


def _may_be_all_local(spec: Any) -> bool:
    """Whether pool memory was decided for a new server, and not by its flavor; or for one whose flavor is plain."""
    decision = used_splits.of(spec)
    return (
        decision is not None
        and decision.features.specs.policy is Policy.AUTO
        and decision.split.pool_mib > 0
        and (decision.split.source != PRESENT or decision.default_by is not None)
    )
