"""Hosts that sleep and plans, in one history: what joins Nova, wakers, operators and the rack, and what must hold."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pondstack.db.store.host_telemetry import Told
from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState
from pondstack.domain.plan import (
    OURS,
    UNDER_WAY,
    ActionKind,
    ActionState,
    Afterwards,
    Plan,
    PlanKind,
    PlanState,
    reason_of,
)
from pondstack.domain.telemetry import HostMetric, Metric
from pondstack.ledger.store import Freeze
from tests.fixtures.memory import host_sleeps
from tests.fixtures.memory import plans as memory_plans
from tests.fixtures.memory.store import Transaction

from ..guests.plan import HOST_MIB, KEPT_MIB
from ..invariants import Violation
from . import limits
from .nova import Cloud
from .operator import MAINTENANCE, PlanOperator
from .power import SimBmc, SimWaker, SimWakerClient, WakerCalls

if TYPE_CHECKING:
    from pathlib import Path

    from ..host import SimHost
    from ..plan import Step
    from ..rack import Rack

CPUS = 8
PATIENT = 1000
FROZEN_SECONDS = 2.5
"""So long after a freeze what had begun before it may still begin."""
UNHEARD = ("lose", "delay", "cut", "cut_broker", "pause", "database_down")
"""Faults that make somebody seem silent who is not."""
STANDS_SECONDS = 15.0
"""An order of an operator that has stood for so long is known to whoever changes a service: no process is paused as
long."""


class PlansWorld:
    """`draining`: operators want all hosts awake."""

    def __init__(self, rack: "Rack") -> None:
        self.rack = rack
        self.sleep_conf, self.consolidation_conf = limits.sleep(), limits.consolidation(rack.history)
        self.cloud = Cloud(self)
        self.operator = PlanOperator(self)
        self.wakers = {name: SimWaker(host) for name, host in rack.hosts.items()}
        reachable = {name for name in rack.hosts if self.cloud.process.rng.random() < 0.5}
        self.bmcs = {name: SimBmc(rack, name) for name in sorted(reachable)}
        self.draining = False
        self._migrations = 0
        self._few_since: float | None = None

    def start(self) -> None:
        """Begin to look after lost hosts."""
        self.operator.watch()

    def operate(self, step: "Step") -> None:
        """Begin an order."""
        self.operator.start(step)

    # How the code under test is joined with it

    def join(self, resources: Any) -> None:
        """Give a controller what it has besides."""
        resources.servers, resources.bmcs = self.cloud, self.bmcs
        resources.conf.sleep, resources.conf.consolidation = self.sleep_conf, self.consolidation_conf
        resources.bus.client = lambda target: WakerCalls(self.rack, target.server)
        resources.reader.history = SimpleNamespace(complete_since=lambda: None)
        resources.host_telemetry.hosts, resources.host_telemetry.guests = self._hosts, self._guests

    def stand_ins(self) -> dict[str, dict[str, Any]]:
        """Return what to put in the place of names of the agent's and the controller's modules."""

        def client(folder: "Path", *_arguments: Any) -> SimWakerClient:
            return SimWakerClient(self.rack, folder)

        # It reads tables; nobody hears its messages here.
        silent = {"TransitionNotifier": lambda *_arguments: SimpleNamespace(run=lambda: None)}
        return {
            "pondstack_agent.power.endpoint": {"WakerClient": client},
            "pondstack.controller.consolidation.build": silent,
        }

    def _hosts(self) -> dict[str, dict[str, list[Told]]]:
        """Return what hosts have measured lately; those that sleep tell nothing."""
        found = {}
        for name, host in self.rack.hosts.items():
            mine = [item for item in self.cloud.servers.values() if item.host == name]
            load = min(100.0, 100.0 * sum(item.cpus for item in mine) / CPUS)
            free = HOST_MIB - KEPT_MIB - sum(item.mib for item in mine)
            values = {
                HostMetric.LOAD_PERCENT: load,
                HostMetric.CPUS: CPUS,
                HostMetric.MEMORY_MIB: HOST_MIB,
                HostMetric.FREE_MIB: free,
            }
            age = 0.0 if host.agent_up and not host.asleep else 30.0
            found[name] = {str(key): [Told(float(value), age, "measured")] for key, value in values.items()}
        return found

    def _guests(self, _metrics: Sequence[str], _seconds: float) -> dict[str, dict[str, Told]]:
        servers = self.cloud.servers.values()
        return {item.uuid: {str(Metric.USED_CPUS): Told(item.cpus, 0.0, "measured")} for item in servers}

    # What must hold after every step

    def falls_asleep(self, host: "SimHost") -> None:
        """See that no server is on a host that falls asleep, nor may be placed there."""
        self.rack.scheduler.faults["host slept"] += 1
        if self.cloud.services[host.name].enabled:
            raise Violation("sleeper_enabled", f"{host.name} falls asleep, and Nova may place servers there")
        for server in self.cloud.servers.values():
            if server.host == host.name:
                raise Violation("server_on_sleeper", f"{host.name} falls asleep with server {server.uuid}")

    def disabled(self, host: str, reason: str) -> None:
        """See that consolidation leaves enough hosts awake."""
        plan = self.plans().get(reason.removeprefix(OURS)) if reason.startswith(OURS) else None
        if plan is None or plan.kind is not PlanKind.CONSOLIDATE:
            return
        awake = [name for name, item in self.cloud.services.items() if item.enabled and self.cloud.is_up(name)]
        latest = max(item.since for item in self.cloud.services.values())
        settled = latest < self.rack.scheduler.now - STANDS_SECONDS
        if host in awake and len(awake) <= self.consolidation_conf.least_awake and (settled or not self._struck()):
            raise Violation("too_few_awake", f"{host} is disabled by plan {plan.uuid}, and {awake} are awake")

    def _struck(self) -> bool:
        """Return whether anything may have come between a look at the services and the order that follows it."""
        history = self.rack.history
        return bool(history.faults) or any(step.kind in ("failover", "disable_host") for step in history.operations)

    def enabled(self, host: str) -> None:
        """See that an operator's order stands."""
        service = self.cloud.services[host]
        ours = service.enabled or service.reason == DISABLED_REASON or service.reason.startswith(OURS)
        if not ours and service.since < self.rack.scheduler.now - STANDS_SECONDS:
            raise Violation("order_overridden", f"{host} is enabled, and an operator has disabled it: {service.reason}")
        if self.rack.hosts[host].asleep and not self._struck():
            raise Violation("sleeper_enabled", f"{host} is enabled, and sleeps")

    def migrates(self, uuid: str) -> None:
        """See that consolidation does not migrate more than it may within an hour, which no history lasts."""
        moving = [
            action
            for plan in self.plans().values()
            if plan.kind is PlanKind.CONSOLIDATE
            for action in plan.actions
            if action.server_uuid == uuid and action.state is ActionState.RUNNING
        ]
        self._migrations += bool(moving)
        frozen = self.frozen
        since = self.rack.database_clock() - frozen.since if frozen is not None else 0.0
        if moving and since > FROZEN_SECONDS and not self._unheard():
            raise Violation("moved_though_frozen", f"server {uuid} is migrated, {since:.1f} s after the freeze")
        if self._migrations > self.consolidation_conf.migrations_per_hour:
            raise Violation("migrations_per_hour", f"{self._migrations} migrations of consolidation within an hour")

    def committed(self, transaction: Transaction) -> None:
        """See what a commit did to plans and sleeps."""
        tables = transaction.tables
        if transaction.touched(tables.plans):
            self._check_plans(memory_plans.unattended(transaction))
            self._check_unplaced(list(tables.plans.values()))
        if transaction.touched(tables.host_sleeps):
            open_ = [item.host for item in host_sleeps.unended(transaction)]
            if len(set(open_)) < len(open_):
                raise Violation("sleeps_twice", f"open sleeps of {open_}")
            self._check_lost([item.host for item, _ in tables.host_sleeps.values() if item.state is SleepState.LOST])

    def _unheard(self) -> bool:
        """Return whether somebody may seem silent, or late, who is not."""
        return any(step.kind in UNHEARD for step in self.rack.history.faults)

    def _check_lost(self, hosts: list[str]) -> None:
        """See that a sleeper whose waker answers is not taken for dead; messages that are lost may make it look so."""
        for name in hosts:
            if self.rack.hosts[name].asleep and self.wakers[name].runs and not self._unheard():
                raise Violation("fenced_alive", f"{name} is fenced, and it serves")

    def _check_unplaced(self, plans: list[Plan]) -> None:
        served = [str(item["uuid"]) for plan in plans for item in plan.unplaced]
        if len(set(served)) < len(served):
            raise Violation("woken_twice", f"of {served} one has two plans")

    def _check_plans(self, plans: list[Plan]) -> None:
        owners: dict[str, str] = {}
        for plan in plans:
            for host in plan.hosts if plan.state in UNDER_WAY else ():
                if owners.setdefault(host, plan.uuid) != plan.uuid:
                    raise Violation("two_plans", f"plans {owners[host]} and {plan.uuid} are under way on {host}")

    # The ledger, for whoever watches

    def plans(self) -> dict[str, Plan]:
        """Return all plans."""
        tables = self.rack.store.tables
        return dict(tables.plans)

    @property
    def frozen(self) -> Freeze | None:
        """Since when consolidation is frozen; None: it is not."""
        return self.rack.store.tables.freezes.get(memory_plans.FREEZE)

    def sleep_of(self, host: str) -> HostSleep | None:
        """Return a host's open sleep."""
        rows = self.rack.store.tables.host_sleeps.values()
        return next((item for item, _ in rows if item.host == host and item.is_open), None)

    # The end

    def stop_faults(self) -> None:
        """Have Nova answer, and wakers that run be called."""
        self.cloud.down_until = self.cloud.lossy_until = 0.0
        self.consolidation_conf.auto = False
        self.consolidation_conf.migrations_per_hour = PATIENT  # what waits for the next hour goes on
        for plan in self.plans().values():
            self.rack.scheduler.faults[f"plan {plan.kind} {plan.state}"] += 1

    def drain(self) -> None:
        """Have all hosts be awake."""
        self.draining = True
        self.operator.wake_all()

    def disagreements(self) -> Iterator[str]:
        """Yield what is not in order once everything has ended."""
        if self.operator.at_work or self.cloud.at_work:
            yield "operators or Nova are at work"
        for plan in self.plans().values():
            if plan.is_open and plan.state is not PlanState.PROPOSED:
                yield f"plan {plan.uuid} is {plan.state}: {plan.reason}"
        for name, host in self.rack.hosts.items():
            yield from self._of(name, host)

    def _of(self, name: str, host: "SimHost") -> Iterator[str]:
        sleep, service = self.sleep_of(name), self.cloud.services[name]
        if sleep is not None and (self.draining or sleep.state is not SleepState.ASLEEP):
            yield f"the sleep of {name} is {sleep.state}: {sleep.reason}"
        if host.asleep != (sleep is not None and sleep.state is SleepState.ASLEEP):
            yield f"{name} {'sleeps' if host.asleep else 'is awake'}, and its sleep is {sleep and sleep.state}"
        for plan in self.plans().values():
            by_it = sleep is not None and sleep.work.disabled_by == reason_of(plan)
            if by_it and plan.state is PlanState.CANCELLED:
                yield f"{name} sleeps by plan {plan.uuid}, which was cancelled"
        if service.enabled and host.asleep:
            yield f"{name} sleeps, and Nova may place servers there"
        if not service.enabled and not self._explained(name, service.reason, sleep):
            yield f"{name} is disabled, and nothing says why: {service.reason}"

    def _explained(self, host: str, reason: str, sleep: HostSleep | None) -> bool:
        """Return whether the state says why a host is disabled."""
        if reason == DISABLED_REASON:
            return sleep is not None
        if not reason.startswith(OURS):
            return reason == MAINTENANCE
        plan = self.plans().get(reason.removeprefix(OURS))
        if plan is None or plan.state is PlanState.CANCELLED:
            return False
        chain = {action.kind: action.state for action in plan.actions if action.chain == host}
        stays = plan.kind is PlanKind.DRAIN or plan.afterwards is Afterwards.KEEP
        return stays and chain.get(ActionKind.DISABLE) in (ActionState.DONE, ActionState.SKIPPED)
