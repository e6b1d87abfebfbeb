"""Looks now and then whether Nova has the compute services as their hosts' sleeps want them, and corrects them."""

import time
from collections.abc import Callable, Mapping

from oslo_log import log

from pondstack.clients.nova import ComputeService, Nova
from pondstack.domain.errors import NotFound, NotLeader, PondError
from pondstack.domain.host_sleep import DISABLED_REASON
from pondstack.domain.host_sleep_step import Service
from pondstack.domain.plan import OURS
from pondstack.domain.sleeper_services import stands, wrong
from pondstack.ledger.ledger import Ledger

LOG = log.getLogger(__name__)

LOOK_SECONDS = 30.0
"""Between two looks at all compute services: one call each."""

WATCH_SECONDS = 300.0
"""So long after an epoch began, or its last sleep ended, a late order is looked for."""


class ServiceGuard:
    """One leader's, for the thread that takes sleeps further: no sleep goes on meanwhile."""

    def __init__(self, ledger: Ledger, nova: Nova, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._nova, self._clock = ledger, nova, clock
        self._looks_at = clock()
        self._until = clock() + WATCH_SECONDS

    def watch(self, any_open: bool) -> bool:
        """Look, if it is time; returns whether to go on though no sleep is open."""
        now = self._clock()
        if any_open:
            self._until = now + WATCH_SECONDS
        if now >= self._looks_at:
            self._looks_at = now + LOOK_SECONDS
            try:
                self._look()
            except NotLeader:
                raise
            except PondError as error:
                LOG.debug("Compute services of sleepers are looked at again: %s", error)
        return now < self._until

    def _look(self) -> None:
        services = {item.hypervisor: item for item in self._nova.compute_services()}
        sleeps = self._ledger.host_sleeps.unended()
        asked = {item.host for item in sleeps}
        seen = {name: _plain(item) for name, item in services.items() if item.up or name in asked}
        found = wrong(seen, sleeps, self._late(seen, asked))
        for host in found.to_disable:
            wake = f"openstack memory host wake {host}"
            LOG.warning("Host %s sleeps, and its compute service is told so again after a late order; %s", host, wake)
            self._nova.disable(services[host], DISABLED_REASON)
        for host in found.to_enable:
            LOG.warning(
                "Host %s is awake, and is disabled for a sleep or by a plan that has ended: it is enabled", host
            )
            self._nova.enable(services[host])

    def _late(self, seen: Mapping[str, Service], asked: set[str]) -> set[str]:
        """Return the hosts without a sleep that are disabled by a plan which does not want that any more."""
        disabled = {name: item.disabled_reason for name, item in seen.items() if name not in asked and not item.enabled}
        named = {name: why.removeprefix(OURS) for name, why in disabled.items() if why.startswith(OURS)}
        return {name for name, uuid in named.items() if not self._stands(uuid, name)}

    def _stands(self, uuid: str, host: str) -> bool:
        try:
            return stands(self._ledger.plans.get(uuid), host)
        except NotFound:
            return True  # of a ledger that was restored since: its operator decides


def _plain(service: ComputeService) -> Service:
    return Service(service.enabled, service.disabled_reason)
