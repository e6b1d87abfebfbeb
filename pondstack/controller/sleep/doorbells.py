"""Doorbells of hosts that sleep: who is connected to them before, and has them rung. The bus goes on without them."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import oslo_messaging
from oslo_log import log

from pondstack.controller.sleep.observer import suspension
from pondstack.domain.errors import PondError
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.rack import RackView
from pondstack.rpc.agent_api import AgentAPI

LOG = log.getLogger(__name__)
_FAILURES = (PondError, oslo_messaging.MessagingException)


def ringers(view: RackView, sleeper: str, most: int, down_seconds: float) -> tuple[str, ...]:
    """Return who is to ring for a host: hosts that report and do not sleep, those that borrow first.

    What borrows is likely to stay awake, and its device reaches lenders.
    """
    awake = [
        report
        for report in view.hosts.values()
        if report.name != sleeper and report.sleep is None and not report.fenced and report.age_seconds <= down_seconds
    ]
    awake.sort(key=lambda report: (not (report.borrowed or {}).get("links"), report.name))
    return tuple(report.name for report in awake[:most])


class Doorbells:
    """One leader's. `candidates(host)`: who may ring for it. `agents`: patient; `hasty`: for who is to be awake."""

    def __init__(self, agents: AgentAPI, hasty: AgentAPI, candidates: Callable[[str], Collection[str]]) -> None:
        self._agents, self._hasty, self._candidates = agents, hasty, candidates

    def connect(self, item: HostSleep, epoch: int) -> tuple[str, ...]:
        """Have others connect to the doorbell of a host that is about to sleep; returns who is."""
        asked = self._candidates(item.host)
        if not asked:
            return ()
        operation = suspension(item)
        try:
            rings = self._agents.arm_doorbell(item.host, epoch=epoch, operation_id=operation, ringers=sorted(asked))
        except _FAILURES as error:
            LOG.info("Host %s sleeps without a doorbell: %s", item.host, error)
            return ()
        return tuple(ringer for ringer, ring in rings.items() if self._connects(ringer, item, operation, epoch, ring))

    def _connects(self, ringer: str, item: HostSleep, operation: str, epoch: int, ring: Mapping[str, Any]) -> bool:
        try:
            self._agents.connect_doorbell(ringer, epoch=epoch, operation_id=operation, sleeper=item.host, ring=ring)
        except _FAILURES as error:
            LOG.info("Host %s is not connected to the doorbell of host %s: %s", ringer, item.host, error)
            return False
        return True

    def ring(self, item: HostSleep, epoch: int) -> str:
        """Have a host rung for; returns who did, "": nobody can."""
        for ringer in item.work.ringers:
            try:
                self._hasty.ring_doorbell(ringer, epoch=epoch, operation_id=suspension(item), sleeper=item.host)
            except _FAILURES as error:
                LOG.info("Host %s does not ring for host %s: %s", ringer, item.host, error)
                continue
            return ringer
        return ""
