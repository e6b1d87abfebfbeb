"""Compute services that are not what sleeps and plans of their hosts want them to be. Pure.

Nova does what it is told by whoever may: an operator, or a former leader that stood still between its last look at the
lead and its order. Nothing in Nova keeps that from a host that its successor has put to sleep or woken since, or whose
plan has ended.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState
from pondstack.domain.host_sleep_step import Service
from pondstack.domain.plan import OURS, ActionKind, ActionState, Afterwards, Plan, PlanKind, PlanState

STAY_DISABLED = frozenset({SleepState.SUSPENDING, SleepState.ASLEEP})
"""States with which an enabled service does not go. Where one is enabled before, the sleep ends by itself."""


class Wrong(NamedTuple):
    """Hosts whose services are to be disabled, and enabled."""

    to_disable: tuple[str, ...]
    to_enable: tuple[str, ...]


def wrong(services: Mapping[str, Service], sleeps: Sequence[HostSleep], late: Collection[str]) -> Wrong:
    """Return what is wrong of the services that are up or of sleepers, by host; `sleeps`: all that are open.

    One that was disabled for a sleep is to be enabled where none is open. `services`, looked at first, has those that
    are up, and those of sleepers. `late`: hosts that are disabled by an order of a plan that does not stand.
    """
    asleep = {item.host: item for item in sleeps if item.state in STAY_DISABLED}
    left = services.keys() - {item.host for item in sleeps}
    return Wrong(
        tuple(sorted(host for host in asleep.keys() & services.keys() if not _sleeps(services[host], asleep[host]))),
        tuple(sorted(host for host in left if _for_a_sleep(services[host]) or host in late)),
    )


def stands(plan: Plan, host: str) -> bool:
    """Return whether a plan that has disabled a host, which does not sleep, wants it so."""
    if plan.is_open:
        return True
    wakes = plan.kind is PlanKind.CONSOLIDATE and plan.afterwards is Afterwards.SUSPEND
    if plan.state is PlanState.CANCELLED or wakes:
        return False
    done = (ActionState.DONE, ActionState.SKIPPED)
    return any(item.kind is ActionKind.DISABLE and item.host == host and item.state in done for item in plan.actions)


def _sleeps(service: Service, sleep: HostSleep) -> bool:
    """Return whether Nova has a sleeper as it should: an operator's reason may stay, a plan's gives way."""
    return not service.enabled and (sleep.work.kept_disabled or not service.disabled_reason.startswith(OURS))


def _for_a_sleep(service: Service) -> bool:
    return not service.enabled and service.disabled_reason == DISABLED_REASON
