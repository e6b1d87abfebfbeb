"""The reconciler and mitigations: what is under way is left alone, and what does not come further is told. Pure."""

from collections.abc import Iterable

from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.mitigation import MitigationState
from pondstack.domain.model import Allocation

KEPT = frozenset({MitigationState.CLAIMING, MitigationState.MOVING, MitigationState.REWRITING, MitigationState.UNDOING})
"""Until the slices go back, the mitigation alone says what becomes of them; then they go as all others do."""


def left_alone(observation: Observation, item: Allocation) -> bool:
    """Tell whether an allocation is a mitigation's, which needs it until its guest is off the pool."""
    found = observation.mitigated.get(item.consumer_uuid)
    return found is not None and found.host == item.host and found.state in KEPT


def mitigation_rules(observation: Observation) -> Iterable[Finding]:
    """Find the mitigations that do not come further; a copy takes the time that it takes."""
    for item in observation.mitigations:
        limit = observation.limits.mitigation_stuck_seconds
        if item.state_seconds > limit and (item.state is not MitigationState.MOVING or item.reason):
            about = f"it is {item.state} for {item.state_seconds:.0f} s: {item.reason or 'under way'}"
            yield Finding("mitigation_stuck", Severity.WARNING, f"mitigation of server {item.consumer_uuid}", about)
