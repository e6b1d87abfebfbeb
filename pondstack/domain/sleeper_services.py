"""Compute services that are not what their hosts' sleeps want them to be. Pure.

Nova does what it is told by whoever may: an operator, or a former leader that stood still between its last look at the
lead and its order. Nothing in Nova keeps that from a host that its successor has put to sleep or woken since.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState
from pondstack.domain.host_sleep_step import Service

STAY_DISABLED = frozenset({SleepState.SUSPENDING, SleepState.ASLEEP})
"""States with which an enabled service does not go. Where one is enabled before, the sleep ends by itself."""


class Wrong(NamedTuple):
    """Hosts whose services are to be disabled, and enabled."""

    to_disable: tuple[str, ...]
    to_enable: tuple[str, ...]


def wrong(services: Mapping[str, Service], sleeps: Sequence[HostSleep]) -> Wrong:
    """Return what is wrong of the services that are up or of sleepers, by host; `sleeps`: all that are open.

    One that was disabled for a sleep is to be enabled where none is open. `services`, looked at first, has those that
    are up, and those of sleepers.
    """
    asleep = {item.host for item in sleeps if item.state in STAY_DISABLED}
    left = services.keys() - {item.host for item in sleeps}
    return Wrong(
        tuple(sorted(host for host in asleep & services.keys() if services[host].enabled)),
        tuple(sorted(host for host in left if _for_a_sleep(services[host]))),
    )


def _for_a_sleep(service: Service) -> bool:
    return not service.enabled and service.disabled_reason == DISABLED_REASON
