"""What operators do in a history with plans: orders, plans, freezes; and what they look after, such as lost hosts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pondstack.domain.host_sleep import SleepState
from pondstack.domain.plan import PlanKind, PlanState

from ..api import SimControllerAPI
from ..lending.tenant import FAILED
from .plan import BOOT, CANCEL, DELETE, DISABLE, DRAIN, FREEZE, PLAN, RESTORE, SUSPEND, WAKE
from .power import cycle

if TYPE_CHECKING:
    from ..plan import Step
    from .world import PlansWorld

CALL_SECONDS = 3.0
DECIDED_SECONDS = 10.0
LOOK_SECONDS = 2.0
STUCK_SECONDS = 12.0
"""A host that does not wake for so long after its deadline is reset by hand."""
MAINTENANCE = "maintenance"
EAGER = {"underload_percent": 90.0, "overload_percent": 95.0}
"""Hosts of histories have few servers: most are emptied."""


class PlanOperator:
    """One process, never killed. `at_work`: how many orders it has under way."""

    def __init__(self, world: "PlansWorld") -> None:
        self._world, self._rack = world, world.rack
        self.process = world.rack.scheduler.process("cloud operator")
        self.at_work = 0
        self._freezing = 0
        rack = world.rack
        self._calls = SimControllerAPI(rack.network, rack.moments, rack.scheduler, CALL_SECONDS, self.process.rng)
        self._orders: dict[str, Callable[[Step], object]] = {
            BOOT: lambda step: world.cloud.spawn(lambda: world.cloud.boot(step.values["mib"], step.values["cpus"])),
            DELETE: self._delete,
            PLAN: self._plan,
            CANCEL: self._cancel,
            FREEZE: self._freeze,
            SUSPEND: lambda step: self._calls.suspend_host(name=step.target, operation_id=self._id()),
            WAKE: lambda step: self._calls.wake_host(name=step.target, operation_id=self._id()),
            DRAIN: lambda step: self._calls.create_plan(kind="drain", target=step.target, operation_id=self._id()),
            RESTORE: lambda step: self._calls.create_plan(kind="restore", target=step.target, operation_id=self._id()),
            DISABLE: self._disable,
        }

    def start(self, step: "Step") -> None:
        """Begin an order."""
        self._spawn(lambda: self._orders[step.kind](step), str(step))

    def _spawn(self, work: Callable[[], object], about: str) -> None:
        self.at_work += 1

        def run() -> None:
            try:
                self._rack.scheduler.note(f"ORDER {about}")
                work()
            except FAILED as error:
                self._rack.scheduler.note(f"{about} is refused: {error}")
            finally:
                self.at_work -= 1

        self._rack.scheduler.spawn(self.process, run)

    def _id(self) -> str:
        return str(UUID(int=self.process.rng.getrandbits(128), version=4))

    def _delete(self, step: "Step") -> None:
        servers = list(self._world.cloud.servers.values())
        if servers:
            server = servers[step.values["which"] % len(servers)]
            self._world.cloud.spawn(lambda: self._world.cloud.delete(server))

    def _plan(self, step: "Step") -> None:
        settings: dict[str, Any] = EAGER | {"afterwards": step.values["afterwards"]}
        uuid = self._calls.create_plan(kind="consolidate", settings=settings, operation_id=self._id())["uuid"]
        ends = self._rack.scheduler.now + DECIDED_SECONDS
        while self._state(uuid) is PlanState.DECIDING and self._rack.scheduler.now < ends:
            self._rack.scheduler.sleep(0.5)
        self._rack.scheduler.sleep(step.values["seconds"])
        if step.values["applied"]:
            self._calls.apply_plan(uuid=uuid, operation_id=self._id())
            self._rack.scheduler.faults["plan applied"] += 1

    def _state(self, uuid: str) -> PlanState:
        return self._world.plans()[uuid].state

    def _cancel(self, step: "Step") -> None:
        plans = [plan for plan in self._world.plans().values() if plan.is_open]
        if plans:
            self._calls.cancel_plan(uuid=plans[step.values["which"] % len(plans)].uuid, operation_id=self._id())

    def _freeze(self, step: "Step") -> None:
        self._freezing += 1
        try:
            self._try(lambda: self._calls.freeze_consolidation(reason="for the test", operation_id=self._id()))
            self._rack.scheduler.faults["consolidation frozen"] += 1
            self._rack.scheduler.sleep(step.values["seconds"])
            self._thaw()
        finally:
            self._freezing -= 1

    def _thaw(self) -> None:
        self._insist(lambda: self._calls.freeze_consolidation(reason=None, operation_id=self._id()))

    def _insist(self, work: Callable[[], object]) -> None:
        while True:
            try:
                work()
                return
            except FAILED as error:
                self._rack.scheduler.note(f"tried again: {error}")
                self._rack.scheduler.sleep(1.0)

    def _disable(self, step: "Step") -> None:
        """Disable a compute service, as for maintenance, whatever it is; and enable it again, perhaps."""
        cloud, host = self._world.cloud, step.target
        if self._world.sleep_of(host) is not None or cloud.services[host].reason:
            return  # an operator looks first
        cloud.change(host, enabled=False, reason=MAINTENANCE)
        self._rack.scheduler.sleep(step.values["seconds"])
        if step.values["back"] and cloud.services[host].reason == MAINTENANCE and self._world.sleep_of(host) is None:
            cloud.change(host, enabled=True)

    # What it looks after

    def watch(self) -> None:
        """Look after hosts that died in their sleep, or do not wake, and after a freeze that came after its end."""
        self._rack.scheduler.spawn(self.process, self._look_after)

    def _look_after(self) -> None:
        since: dict[str, float] = {}
        scheduler = self._rack.scheduler
        while True:
            scheduler.sleep(LOOK_SECONDS)
            if self._world.frozen is not None and not self._freezing:  # it was not answered, and came late
                self._spawn(self._thaw, "consolidation goes on")
            for name, host in self._rack.hosts.items():
                sleep = self._world.sleep_of(name)
                if sleep is None or sleep.state not in (SleepState.LOST, SleepState.WAKING):
                    since.pop(name, None)
                elif scheduler.now - since.setdefault(name, scheduler.now) > self._patience(sleep.state):
                    since.pop(name)
                    if host.asleep or host.life is not None:
                        cycle(self._rack, name)
                    if sleep.state is SleepState.LOST:
                        self._spawn(lambda name=name: self._revive(name), f"{name} takes part again")

    def _patience(self, state: SleepState) -> float:
        waits = self._world.sleep_conf.wake_seconds + STUCK_SECONDS
        return 3.0 if state is SleepState.LOST else float(waits)

    def _revive(self, name: str) -> None:
        while not self._rack.hosts[name].up:
            self._rack.scheduler.sleep(0.5)
        self._calls.unfence_host(name=name, operation_id=self._id())
        self._calls.wake_host(name=name, operation_id=self._id())

    def wake_all(self) -> None:
        """Have all hosts be awake at the end, and no plan go on.

        A late copy of an order puts a host to sleep that had been awake: hosts are looked at again.
        """
        self._spawn(self._wake_all, "all are woken")
        self._rack.scheduler.spawn(self.process, self._wake_again)

    def _wake_again(self) -> None:
        while True:
            self._rack.scheduler.sleep(5.0)
            self._wake_hosts()

    def _wake_all(self) -> None:
        for plan in self._world.plans().values():
            if plan.is_open and plan.kind is PlanKind.CONSOLIDATE:
                self._try(lambda uuid=plan.uuid: self._calls.cancel_plan(uuid=uuid, operation_id=self._id()))
        self._wake_hosts()

    def _wake_hosts(self) -> None:
        for name in self._rack.hosts:
            while self._world.sleep_of(name) is not None:
                self._try(lambda name=name: self._calls.wake_host(name=name, operation_id=self._id()))
                self._rack.scheduler.sleep(1.0)

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except FAILED as error:
            self._rack.scheduler.note(f"refused: {error}")
