"""The reconciler and hosts that sleep: who is asleep is expected to be silent, and only what is wrong is told. Pure."""

from collections.abc import Iterable

from pondstack.controller.reconcile.findings import Finding, Severity
from pondstack.controller.reconcile.observation import Observation
from pondstack.domain.host_sleep import SleepState


def sleep_rules(observation: Observation) -> Iterable[Finding]:
    """Find the hosts that stopped serving while they slept, and those that come no further on their way."""
    for name, report in observation.rack.hosts.items():
        sleep = report.sleep
        if sleep is None or sleep.state is SleepState.ASLEEP:
            continue
        if sleep.state is SleepState.LOST:
            detail = f"{sleep.reason or 'it stopped serving'}; look at it, then wake and unfence it, or remove it"
            yield Finding("sleeper_lost", Severity.WARNING, f"host {name}", detail)
        elif sleep.state_seconds > observation.limits.sleep_stuck_seconds:
            about = f"it is {sleep.state} for {sleep.state_seconds:.0f} s: {sleep.reason or 'under way'}"
            yield Finding("sleep_stuck", Severity.WARNING, f"host {name}", about)
