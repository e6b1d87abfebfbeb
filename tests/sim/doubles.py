"""What the controller's real Node and Leader are joined with in a history, in place of bus, threads and SQL."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import oslo_messaging

from pondstack.controller.lending.active_hosts import ActiveHosts
from pondstack.controller.lending.admission import Admission
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.pool.devices import DeviceSpec
from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.workers import WakeableWorker
from pondstack.devices.base import PoolDevice
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.rack import RackView
from pondstack.rpc.targets import CONTROLLER_TOPIC
from pondstack.telemetry.metrics import Counts

from . import settings
from .api import SimAgentAPI, SimNodeAPI
from .fault_links import DeviceLink
from .host import serving
from .kernel import Process, Scheduler
from .threads import SimExecutor

if TYPE_CHECKING:
    from .rack import Rack


class SimResources:
    """pondstack.controller.resources.ControllerResources over the simulated world."""

    def __init__(self, rack: "Rack", name: str, process: Process) -> None:
        self._rack = rack
        asks = rack.history.rooms is not None
        self.conf = settings.controller_conf(name, rack.history.buffer_slices, ask_active_hosts=asks)
        self.clock = lambda: rack.scheduler.now
        self.terms = settings.TERMS
        self.broker_terms = settings.BROKER_TERMS
        self.name = name
        self.holder = f"{name}:{rack.lives(name)}"
        self.database = rack.database(process)
        self.leadership = rack.lease(process)
        self.reader = rack.reader(self.database)
        rack.configured[name] = rack.history.pools.keys() - rack.operator.retired
        self.specs = [DeviceSpec(pool, "memory", pool) for pool in rack.history.pools if pool in rack.configured[name]]
        self.placement = rack.placement
        self.bus = SimpleNamespace(
            border=None, revoked=dict, server=lambda target, endpoints: SimServer(rack, target, endpoints)
        )
        self.telemetry = SimpleNamespace(write=lambda _host, _samples: None)
        self.history = SimpleNamespace(record=lambda _facts: None)
        self.host_telemetry = SimpleNamespace(write=lambda _host, _readings: None)
        self.measured = ()
        self.nova = self.servers = None
        self.sealer = None if rack.lent is None else rack.lent.sealer()
        if rack.plans is not None:
            rack.plans.join(self)
        self.counts = Counts()
        self.notify_failed = self.notify_transition = lambda _event: None

    def conf_of_node(self) -> SimpleNamespace:
        """Return a configuration that the double of ControllerResources finds these resources by."""
        self.conf.resources = self
        return self.conf

    def device(self, spec: DeviceSpec) -> PoolDevice:
        """Return a way to a device."""
        return DeviceLink(self._rack.devices[spec.name], self._rack.moments)

    def close(self) -> None:
        """Nothing to close."""


class SimServer:
    """An RPC server of oslo.messaging."""

    def __init__(self, rack: "Rack", target: Any, endpoints: Sequence[Any]) -> None:
        self._rack = rack
        self._endpoints = endpoints
        self._topics = (
            {target.topic} if target.topic == CONTROLLER_TOPIC else {target.topic, f"{target.topic}.{target.server}"}
        )
        self._servers: list[tuple[str, Any]] = []
        self.epoch: int | None = None

    def start(self) -> None:
        """Consume."""
        task = self._rack.scheduler.current()
        assert task is not None
        if CONTROLLER_TOPIC in self._topics:
            self._rack.opened(task.process)
        for topic in sorted(self._topics):
            self._servers.append((topic, self._rack.network.serve(topic, task.process, self._handle)))

    def stop(self) -> None:
        """Consume no more."""
        for topic, server in self._servers:
            self._rack.network.leave(topic, server)

    def wait(self) -> None:
        """Requests under way end by themselves."""

    def _handle(self, method: str, arguments: Mapping[str, Any]) -> Any:
        try:
            answer = getattr(serving(self._endpoints, method), method)({}, **arguments)
        except oslo_messaging.ExpectedException as wrapped:
            raise wrapped.exc_info[1] from None
        if method == "assign":
            self._rack.watch.granted(arguments["operation_id"], answer)
        return answer


class StillFollower:
    """pondstack.controller.node.follower.Follower where nobody reads a stand-by's view."""

    sequence = 0

    def __init__(self, *_arguments: Any) -> None:
        pass

    def poll(self) -> None:
        """Follow nothing."""

    def view(self) -> tuple[RackView, int]:
        """Return an empty view."""
        return RackView(), 0


class Periodics:
    """Stands in for futurist.periodics: a worker runs its tasks one after the other, when they are due."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def periodic(self, spacing: float, run_immediately: bool = False) -> Callable[[Any], Any]:
        """Mark a task."""

        def mark(work: Any) -> Any:
            work.spacing, work.first = spacing, 0.0 if run_immediately else spacing
            return work

        return mark

    def PeriodicWorker(self, tasks: Any, **_named: Any) -> "Worker":
        """Return a worker."""
        return Worker(self._scheduler, [task for task, _, _ in tasks])


class Worker:
    """A periodic worker."""

    def __init__(self, scheduler: Scheduler, tasks: list[Any]) -> None:
        self._scheduler = scheduler
        self._tasks = tasks
        self._stopped = False

    def start(self) -> None:
        """Run until it is stopped."""
        due = {task: self._scheduler.now + task.first for task in self._tasks}
        while not self._stopped:
            task = min(self._tasks, key=lambda item: due[item])
            if due[task] > self._scheduler.now:
                self._scheduler.sleep(due[task] - self._scheduler.now)
                continue
            task()
            due[task] = self._scheduler.now + task.spacing

    def stop(self) -> None:
        """Run nothing more."""
        self._stopped = True

    def wait(self) -> None:
        """The task in hand ends by itself."""


def waiting(scheduler: Scheduler) -> SimpleNamespace:
    """Return what stands in for concurrent.futures."""

    def wait(futures: list[Any], timeout: float | None = None) -> tuple[set[Any], set[Any]]:
        deadline = None if timeout is None else scheduler.now + timeout
        task = scheduler.current()
        assert task is not None
        done: dict[Any, None] = {}
        for future in futures:
            left = None if deadline is None else max(0.0, deadline - scheduler.now)
            if _wait_one(scheduler, future, left):
                done[future] = None
        return done, {future: None for future in futures if future not in done}  # type: ignore[return-value]

    return SimpleNamespace(wait=wait, Future=Future)


def _wait_one(scheduler: Scheduler, future: Any, timeout: float | None) -> bool:
    deadline = None if timeout is None else scheduler.now + timeout
    while not future.done():
        left = None if deadline is None else deadline - scheduler.now
        if left is not None and left <= 0:
            return False
        task = scheduler.current()
        assert task is not None
        turn = task.turn
        future.add_done_callback(lambda _f, task=task, turn=turn: scheduler.wake(task, turn, True))
        scheduler.wait(left)
    return True


class Idle:
    """The settler where nobody lends memory, the keeper where no host holds slices, the sizer where buffers are fixed.

    Their turns would do nothing but put all other threads' in another order.
    """

    stopping = False

    def run(self) -> None:
        """Do nothing, as for all that follows."""

    def start(self) -> None:
        """Have nothing to start."""

    def wake(self) -> None:
        """Have nothing to do."""

    def stop(self) -> None:
        """End."""


class NoSplits(Idle):
    """The service of splits where no instance is split."""

    def projects_changed(self) -> None:
        """Tell nobody."""

    def corrected(self, _uuid: str) -> None:
        """Tell nobody."""


class NoPredictions(Idle):
    """No instance is split in a history."""

    def describe(self) -> dict[str, Any]:
        """Return the predictor in force."""
        return {}

    def sensitivity(self) -> None:
        """Say nothing of any instance."""


class NoPlanner:
    """Replays of the planner: a process of its own, and rows that no rule of a history looks at."""

    endpoint = None

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing to end."""

    def tidy(self) -> None:
        """Nothing to forget."""


class NoQuality(Idle):
    """Nobody watches the guests."""

    endpoint = None


def controller_doubles(rack: "Rack") -> dict[str, dict[str, Any]]:
    """Return what to put in the place of names of the controller's modules."""
    scheduler = rack.scheduler

    def executor(**_named: Any) -> SimExecutor:
        task = scheduler.current()
        assert task is not None
        return SimExecutor(scheduler, task.process)

    idle = {"settler"} if rack.lent is None else set()
    if not rack.history.holding:
        idle.add("host slices")
    parts = {
        "AgentAPI": lambda _bus, timeout_seconds, **_named: WatchedAgentAPI(rack, timeout_seconds),
        "futurist": SimpleNamespace(ThreadPoolExecutor=executor),
        "Ledger": rack.ledger,
        "WakeableWorker": lambda name, task, settle_seconds=0.0: (
            Idle() if name in idle else WakeableWorker(name, task, settle_seconds)
        ),
        # Without guests nobody else has the memory of hosts, and their providers tell of none.
        "ActiveHosts": lambda *given, **named: ActiveHosts(
            *given, **(named if rack.guests is not None else named | {"claims": None})
        ),
        "Admission": Admission if rack.guests is not None else lambda *_arguments, **_named: None,
        **({} if rack.history.sized else {"BufferSizer": lambda *_arguments: Idle()}),
        "LendingInventory": lambda placement, ledger: (
            LendingInventory(placement.for_epoch(ledger.epoch), ledger) if rack.history.offers is not None else None
        ),
        "make_splits": lambda *_arguments: NoSplits(),
        "Predictions": lambda *_arguments: NoPredictions(),
        "PlannerJobs": lambda *_arguments: NoPlanner(),
        "Quality": lambda *_arguments: NoQuality(),
        "RemoteClaims": lambda placement: RemoteClaims(placement) if rack.history.claims else None,
        "InventorySync": lambda placement, ledger, *others: InventorySync(
            placement.for_epoch(ledger.epoch), ledger, *others
        ),
    }
    node: dict[str, Any] = {
        "ControllerResources": lambda conf: conf.resources,
        "NodeAPI": lambda _bus, name: SimNodeAPI(rack.network, name),
    }
    if not rack.sql:
        from tests.fixtures.memory import controllers

        schema = SimpleNamespace(demand_head=lambda _database: None)
        node |= {"Follower": StillFollower, "controllers": controllers, "migration": schema}
    return {
        **(rack.lent.stand_ins() if rack.lent is not None else {}),
        **(rack.plans.stand_ins() if rack.plans is not None else {}),
        "pondstack.domain.free_buffer": {"UNSIZED": FreeBuffer(slices=rack.history.buffer_slices)},
        "pondstack.controller.leader.leader": {"periodics": Periodics(scheduler)},
        "pondstack.controller.leader.parts": parts,
        "pondstack.controller.node.node": node,
        "pondstack.controller.reconcile.reconciler": {"futures": waiting(scheduler)},
    }


class WatchedAgentAPI(SimAgentAPI):
    """The controller's client of the agents; what was asked for under which epoch is noted."""

    def __init__(self, rack: "Rack", timeout_seconds: float) -> None:
        super().__init__(rack.network, rack.moments, timeout_seconds)
        self._rack = rack

    def report(self, host: str, *, epoch: int) -> Any:
        """Ask for a report."""
        self._rack.asked.setdefault(epoch, set()).add(host)
        return super().report(host, epoch=epoch)
