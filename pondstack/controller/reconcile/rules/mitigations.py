"""The reconciler and mitigations: what is under way is left alone, and what does not come further is told. Pure."""

from collections.abc import Iterable

from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.mitigation import MitigationState
from pondstack.domain.model import Allocation

GIVING_BACK = frozenset({MitigationState.RELEASING, MitigationState.UNCLAIMING})
"""States in which a guest is off the pool, and its slices are on their way back."""


def left_alone(observation: Observation, item: Allocation) -> bool:
    """Tell whether an allocation is a mitigation's: it alone says what becomes of the slices, claimed or not.

    Only memory that does not go offline is set aside as any other, and so is what a guest has left behind at the host
    that it was moved from: Nova has it released there once, and nobody else repeats that.
    """
    found = observation.mitigated.get(item.consumer_uuid)
    if found is None or found.host != item.host:
        return False
    if found.state in GIVING_BACK and observation.claims is not None and observation.claims.gone_from_host(item):
        return False
    return found.state is not MitigationState.RELEASING or observation.stuck(item.host, item.uuid) is None


def mitigation_rules(observation: Observation) -> Iterable[Finding]:
    """Find the mitigations that do not come further; a copy takes the time that it takes."""
    for item in observation.mitigations:
        limit = observation.limits.mitigation_stuck_seconds
        if item.state_seconds > limit and (item.state is not MitigationState.MOVING or item.reason):
            about = f"it is {item.state} for {item.state_seconds:.0f} s: {item.reason or 'under way'}"
            yield Finding("mitigation_stuck", Severity.WARNING, f"mitigation of server {item.consumer_uuid}", about)
