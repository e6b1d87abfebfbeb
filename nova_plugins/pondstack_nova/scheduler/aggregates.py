"""The default policy that the metadata of Nova's host aggregates sets (`pond:default_policy`), without a query.

Nova's scheduler keeps all aggregates in memory, and its own request filters leave on a request which of them its host
must be in: of the requested availability zone, or of the project. Ours runs after them.
"""

import functools
from typing import Any

from oslo_log import log as logging

from pondstack.domain.project_settings import DefaultPolicy

LOG = logging.getLogger(__name__)

KEY = "pond:default_policy"
REFUSAL = f"an aggregate of the host has {KEY}=none"


def see(spec: Any, manager: Any) -> None:
    """Leave on a RequestSpec what nova-scheduler's manager knows of aggregates."""
    spec._pondstack_host_manager = getattr(manager, "host_manager", None)


def default_of(spec: Any) -> DefaultPolicy | None:
    """Return the policy of the aggregates that a request is bound to; None when it is bound to none that says one.

    A host must be in at least one of each set of aggregates. A set says what all of it say; of several, `none` wins.
    """
    said = [_common(wanted.split(","), spec) for wanted in _required(spec)]
    return next((policy for policy in (DefaultPolicy.NONE, DefaultPolicy.AUTO) if policy in said), None)


def refuses(host_state: Any) -> bool:
    """Say whether a host takes no server that has pool memory by a default policy."""
    return any(_value(aggregate) is DefaultPolicy.NONE for aggregate in getattr(host_state, "aggregates", None) or ())


def _required(spec: Any) -> list[str]:
    destination = spec.requested_destination if "requested_destination" in spec else None
    if destination is None or "aggregates" not in destination:
        return []
    return list(destination.aggregates or ())


def _common(uuids: list[str], spec: Any) -> DefaultPolicy | None:
    known = getattr(getattr(spec, "_pondstack_host_manager", None), "aggs_by_id", {})
    said = {aggregate.uuid: _value(aggregate) for aggregate in list(known.values())}
    policies = {said.get(uuid) for uuid in uuids}
    return policies.pop() if len(policies) == 1 else None


def _value(aggregate: Any) -> DefaultPolicy | None:
    text = (aggregate.metadata or {}).get(KEY)
    return None if text is None else _parsed(text, aggregate.name)


@functools.lru_cache(maxsize=256)  # so that a wrong value is logged once
def _parsed(text: str, name: str) -> DefaultPolicy | None:
    try:
        return DefaultPolicy(text.strip().lower())
    except ValueError:
        LOG.warning(
            "Aggregate %s: %s=%s is not used; it must be one of %s", name, KEY, text, ", ".join(map(str, DefaultPolicy))
        )
        return None
