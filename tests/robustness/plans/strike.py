"""One death at a step of a plan: the ledger says when the plan is there, its leader is held, the victim dies."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pondstack.db.read.reader import SqlReader
from pondstack.domain.errors import PondError
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.plan import ActionState, Plan, PlanState
from tests.robustness.held_leader import hold_leader, let_go
from tests.robustness.mitigations.rack import Processes
from tests.robustness.plans.plan import OF_THE_SLEEPER, Kill, Step, Victim


def is_at(step: Step, plan: Plan | None, sleep: HostSleep | None) -> bool:
    """Tell whether a plan is at a step. `sleep`: the newest one of its host."""
    if plan is None:
        return False
    if step.kind is None:
        return plan.state is PlanState.DECIDING
    begun = any(item.kind is step.kind and item.state is ActionState.RUNNING for item in plan.actions)
    asleep = sleep.state if sleep is not None and sleep.is_open else None
    return plan.state is PlanState.RUNNING and begun and step.sleep in (None, asleep)


class Watch:
    """Looks at a plan; `uuid` "": at the newest one that is made after this was."""

    def __init__(self, reader: SqlReader, uuid: str = "") -> None:
        self._reader, self.uuid = reader, uuid
        self._known = set() if uuid else {item.uuid for item in reader.plans.plans()}

    def plan(self) -> Plan | None:
        """Return it, None: it is not there, or the database does not tell."""
        try:
            return self._reader.plans.plan(self.uuid) if self.uuid else self._newest()
        except PondError:
            return None

    def _newest(self) -> Plan | None:
        newest = self._reader.plans.plans(limit=1)
        return newest[0] if newest and newest[0].uuid not in self._known else None

    def sleep(self, host: str) -> HostSleep | None:
        """Return a host's newest sleep, None also while the database does not tell."""
        try:
            return self._reader.host(host).sleep
        except PondError:
            return None


@dataclass(frozen=True, slots=True)
class Pair:
    """The two hosts of a plan."""

    sleeper: str
    other: str

    def service(self, victim: Victim, leader: str) -> str:
        """Return the service that a victim is, "": nobody."""
        return {
            Victim.LEADER: leader,
            Victim.SLEEPER_AGENT: f"pondstack-agent-{self.sleeper}",
            Victim.OTHER_AGENT: f"pondstack-agent-{self.other}",
            Victim.SLEEPER_COMPUTE: f"nova-compute-{self.sleeper}",
            Victim.OTHER_COMPUTE: f"nova-compute-{self.other}",
            Victim.OPERATOR: "",
        }[victim]


class Striker:
    """Strikes by plan. `stands_still` tells of a service whether its host sleeps, so that it cannot die."""

    def __init__(self, processes: Processes, stands_still: Callable[[str], bool]) -> None:
        self._processes, self._stands_still = processes, stands_still

    def strike(self, kill: Kill, pair: Pair, watch: Watch, cancel: Callable[[str], None]) -> str | None:
        """Kill at the step of a plan that was ordered; returns the service that died, None: the step was not met.

        What was killed runs again when it returns.
        """
        held = hold_leader(self._processes, lambda: self._look(kill, pair, watch), kill.run_seconds)
        if held is None:
            return None
        leader, pid = held
        service = pair.service(kill.victim, leader)
        try:
            if service:
                self._processes.kill(service)
        finally:
            let_go(pid)
        if not service:
            cancel(watch.uuid)
            return service
        threading.Event().wait(kill.down_seconds)
        self._processes.start(service)
        return service

    def _look(self, kill: Kill, pair: Pair, watch: Watch) -> bool | None:
        plan = watch.plan()
        if plan is not None and (not plan.is_open or (kill.step.kind is None and plan.state is not PlanState.DECIDING)):
            return None
        if not is_at(kill.step, plan, watch.sleep(pair.sleeper)):
            return False
        return not (kill.victim in OF_THE_SLEEPER and self._stands_still(pair.service(kill.victim, "")))
