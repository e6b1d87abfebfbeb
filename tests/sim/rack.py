"""The world of one history: who is there, how they are joined, and what the faults do to them."""

from collections.abc import Callable
from typing import Any

from pondstack.controller.lending.inventory import NAME, PROVIDER
from pondstack.devices import pool_uuid
from pondstack.devices.base import Permission
from pondstack.domain.admission import Lend
from pondstack.domain.lending import REMOTE_CLASS
from pondstack.domain.rack import RackView
from tests.fixtures.memory import lends as memory_lends
from tests.fixtures.memory.lease import MemoryLease
from tests.fixtures.memory.ledger import MemoryLedger
from tests.fixtures.memory.reader import MemoryReader, read_rack
from tests.fixtures.memory.store import MemoryStore, Transaction
from tests.fixtures.memory_device import MemoryDevice

from . import settings
from .fault_links import DatabaseLink, Moments
from .faults import Faults
from .guests.plan import KINDS as GUESTS
from .guests.world import GuestsOnLenders
from .heirs.caches import Caches
from .holding.plan import KINDS as WANTS
from .holding.world import HoldingWorld
from .host import SimHost
from .invariants import Violation, Watch
from .kernel import Process, Scheduler
from .leadership_watch import LeadWatch
from .lending.world import LendingWorld
from .network import Network
from .node import SimNode
from .nova import Nova
from .placement import Placement, Provider
from .plan import History
from .plans.plan import OPERATIONS as ORDERS
from .plans.world import PlansWorld
from .removal.operator import Operator
from .removal.plan import KINDS as REMOVALS


class WatchedDevice(MemoryDevice):
    """A device that tells what becomes of it."""

    def __init__(self, serial: str, slices: int, watch: Watch) -> None:
        super().__init__(serial, slices)
        self.uuid = pool_uuid(serial)
        self._watch = watch

    def grant(self, *arguments: Any, **named: Any) -> None:
        """Let a host in."""
        before = dict(self.table)
        super().grant(*arguments, **named)
        self._changed(before)

    def add_heir(self, *arguments: Any, **named: Any) -> None:
        """Let an heir in."""
        before = dict(self.table)
        super().add_heir(*arguments, **named)
        self._changed(before)

    def revoke(self, *arguments: Any, **named: Any) -> None:
        """Take slices back."""
        before = dict(self.table)
        super().revoke(*arguments, **named)
        self._changed(before)

    def sanitize(self, *arguments: Any, **named: Any) -> None:
        """Zero a slice."""
        super().sanitize(*arguments, **named)
        self._watch.device_changed(self.uuid)

    def _changed(self, before: dict[int, Permission]) -> None:
        if before != self.table:
            self._watch.device_changed(self.uuid)

    def _accepted(self, epoch: int) -> None:
        super()._accepted(epoch)
        self._watch.accepted(f"device {self._info.serial}", epoch)


class WatchedStore(MemoryStore):
    """A store that shows each change of slices and allocations to the watch."""

    def __init__(self, clock: Callable[[], float], watch: Watch, lent: LendingWorld | None = None) -> None:
        super().__init__(clock)
        self._watch, self._lent = watch, lent
        self.changed: Callable[[RackView], None] | None = None
        self.sleepers: PlansWorld | None = None

    reading = staticmethod(read_rack)
    lends = memory_lends

    @property
    def leading(self) -> int:
        """The epoch that the row says."""
        return self.tables.leadership[1].epoch

    def committed(self, transaction: Transaction) -> None:
        """Show it."""
        if transaction.touched(self.tables.hosts) or transaction.touched(self.tables.pools):
            self._watch.known(set(self.tables.hosts), set(self.tables.pools))
        if transaction.touched(self.tables.slices) or transaction.touched(self.tables.allocations):
            view = read_rack(transaction)
            self._watch.ledger_changed(view.ledger())
            if self.changed is not None:
                self.changed(view)
        if self._lent is not None:
            self._lent.committed(transaction)
        if self.sleepers is not None:
            self.sleepers.committed(transaction)


class Rack:
    """Everything of one history."""

    def __init__(self, history: History, *, sql: bool = False) -> None:
        self.history = history
        self.scheduler = Scheduler(history.seed)
        self.caches = Caches()
        self.watch = Watch(self.caches.cut_short)
        self.lead = LeadWatch(self)
        self.lent = LendingWorld(self) if history.lending else None
        self.guests: GuestsOnLenders | None = None
        self.moments = Moments(self.scheduler)
        self.network = Network(self.scheduler, history.seed)
        self.database_skew_seconds = 0.0
        self._lives: dict[str, int] = {}
        self.sql = sql
        self.asked: dict[int, set[str]] = {}
        self.store: Any = self._make_store()
        self.devices = {name: WatchedDevice(name, slices, self.watch) for name, slices in history.pools.items()}
        self.pool_uuids = {name: device.uuid for name, device in self.devices.items()}
        self.watch.devices = {device.uuid: device for device in self.devices.values()}
        self.placement = Placement(self.scheduler, self.moments, history.hosts)
        self.placement.changed = self._claims_changed
        if history.claims:
            self.placement.providers[PROVIDER] = Provider(NAME, resource_class=REMOTE_CLASS)
        self.placement.fences_aggregates = history.removal
        self.placement.wrote_inventory = lambda uuid, epoch: self.watch.accepted(f"the inventory of {uuid}", epoch)
        self.hosts = {name: SimHost(self, name) for name in history.hosts}
        self.watch.hosts = {name: host.memory for name, host in self.hosts.items()}
        self.nodes: dict[str, SimNode] = {}
        self._plain_lease = self._lease_of(self.store)
        self.nova = Nova(self)
        self.faults = Faults(self)
        self.operator = Operator(self)
        self.holding: HoldingWorld | None = None
        if history.holding:
            self.holding = HoldingWorld(self)
            self.store.changed = self.holding.committed
            self.placement.unclaimed = self.holding.unclaimed
        if history.guests:
            self.guests = GuestsOnLenders(self)
        self.plans = PlansWorld(self) if history.plans else None
        self.store.sleepers = self.plans
        self.configured: dict[str, set[str]] = {}

    def _make_store(self) -> Any:
        if self.sql:
            from .sql import WatchedDatabase

            return WatchedDatabase(self.database_clock, self.watch, self.lent)
        return WatchedStore(self.database_clock, self.watch, self.lent)

    def lend_of(self, host: str) -> Lend | None:
        """Return what a host is to lend, for whoever watches."""
        lends = self.store.lends
        found: Lend | None = self.store.read(lambda tx: lends.get(tx, host))
        return found

    def database_clock(self) -> float:
        """Return the database's seconds."""
        return 1e6 + self.scheduler.now + self.database_skew_seconds

    def view(self) -> RackView:
        """Return the whole ledger, for whoever watches."""
        view: RackView = self.store.read(self.store.reading)
        return view

    def lives(self, name: str) -> int:
        """Count the lives of a process."""
        self._lives[name] = self._lives.get(name, 0) + 1
        return self._lives[name]

    # How a controller reaches the database

    def database(self, process: Process) -> DatabaseLink:
        """Return a process's connection."""
        return self._link(process, settings.DATABASE_RETRY_SECONDS)

    def _link(self, process: Process, retry_seconds: float) -> DatabaseLink:
        return DatabaseLink(
            self.store,
            scheduler=self.scheduler,
            network=self.network,
            moments=self.moments,
            process=process,
            retry_seconds=retry_seconds,
            committed=lambda epoch, writer: self.watch.wrote(epoch, self.store.leading, writer),
        )

    def opened(self, process: Process) -> None:
        """A leader begins to answer: all live hosts and devices must have heard of its epoch, or been asked."""
        epoch = self.nodes[process.name].epoch
        if epoch is None or any(step.kind in ("clock_jump", "device_failure") for step in self.history.faults):
            return  # ages by a clock that jumped, a device that did not answer: no telling who should have
        if process.paused_until > self.scheduler.now - 2.0:
            return  # the time for asking went by while it was paused
        live = {n for n, report in self.view().hosts.items() if report.age_seconds <= settings.DOWN_SECONDS}
        live -= {name for name, host in self.hosts.items() if host.asleep}
        silent = live - self.asked.get(epoch, set())
        if silent:
            raise Violation("opened_too_soon", f"epoch {epoch} answers and has not asked {sorted(silent)}")
        for name, device in self.devices.items():
            if device.epoch < epoch and name in self.configured[process.name]:
                raise Violation("opened_too_soon", f"epoch {epoch} answers, {device.uuid} knows {device.epoch}")

    def lease(self, process: Process) -> Any:
        """Return a process's lease store."""
        return self._lease_of(self._link(process, settings.LEASE_RETRY_SECONDS))

    def _lease_of(self, database: Any) -> Any:
        if self.sql:
            from pondstack.db.store.leadership import SqlLeadership

            return SqlLeadership(database)
        return MemoryLease(database)

    def lease_now(self) -> tuple[int, str]:
        """Return the present epoch, and the name of the controller that has the lease, "" when it is over."""
        lease = self._plain_lease.read()
        return lease.epoch, lease.holder.partition(":")[0] if lease.remaining_seconds > 0 else ""

    def reader(self, link: DatabaseLink) -> Any:
        """Return a reader."""
        if self.sql:
            from pondstack.db.read.reader import SqlReader

            return SqlReader(link, settings.DOWN_SECONDS)  # type: ignore[arg-type]
        return MemoryReader(link, settings.DOWN_SECONDS)  # type: ignore[arg-type]

    def ledger(self, link: DatabaseLink, epoch: int, down_seconds: float, **named: Any) -> Any:
        """Return a ledger, whose writes are told from those of other epochs."""
        link = link.for_epoch(epoch)
        if self.sql:
            from pondstack.db.store import SQL
            from pondstack.ledger.ledger import Ledger

            return Ledger(link, epoch, down_seconds, **{**named, "store": SQL})  # type: ignore[arg-type]
        return MemoryLedger(link, epoch, down_seconds, **named)  # type: ignore[arg-type]

    def _claims_changed(self) -> None:
        if self.guests is not None:
            self.guests.look()
        for name, uuid in self.pool_uuids.items():
            provider = self.placement.providers.get(uuid)
            if provider is not None:
                self.watch.over_claimed(name, provider.used, self.history.pools[name] * 1024)

    # Who is there

    def start(self) -> None:
        """Start all processes, operations and faults."""
        for name in self.history.controllers:
            self.start_node(name)
        for host in self.hosts.values():
            host.start_agent()
        self.lead.start()
        if self.guests is not None:
            self.guests.start()
        if self.plans is not None:
            self.plans.start()
        for step in self.history.operations:
            self.scheduler.call_at(step.at, lambda step=step: self._operate(step))
        for step in self.history.faults:
            self.scheduler.call_at(step.at, lambda step=step: self.faults.strike(step))

    def start_node(self, name: str) -> None:
        """Start a controller, unless it runs."""
        node = self.nodes.get(name)
        if node is None or not node.process.alive:
            self.nodes[name] = SimNode(self, name)

    def leader(self) -> SimNode | None:
        """Return the controller that takes itself for the leader, the newest epoch's of several."""
        leading = [node for node in self.nodes.values() if node.process.alive and node.epoch is not None]
        return max(leading, key=lambda node: node.epoch or 0, default=None)

    def _operate(self, step: Any) -> None:
        if step.kind in ("failover", "audit", "restart"):
            self.faults.command(step)
        elif self.holding is not None and step.kind in WANTS:
            self.holding.start(step)
        elif step.kind in REMOVALS:
            self.operator.start(step)
        elif self.plans is not None and step.kind in ORDERS:
            self.plans.operate(step)
        elif self.guests is not None and step.kind in GUESTS:
            self.guests.operate(step)
        elif self.lent is not None:
            self.lent.operate(step)
        else:
            self.nova.start(step)
