"""A controller's parts joined in this process: SQLite, an emulated device, real Placement, agents as plain objects.

Nothing runs by itself: a test calls the sanitiser, the reconciler and the writer of Placement when it wants them.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import futurist
import oslo_messaging
import pytest

from pondstack.clients.placement import Placement
from pondstack.controller.leader.endpoint import LeaderEndpoint
from pondstack.controller.leader.failure_notifier import FailureNotifier
from pondstack.controller.leader.split_endpoint import SplitEndpoint
from pondstack.controller.lending.claims import RemoteClaims
from pondstack.controller.lending.inventory import LendingInventory
from pondstack.controller.pool.devices import DeviceRegistry, DeviceSpec
from pondstack.controller.pool.hand_overs import HandOvers
from pondstack.controller.pool.inventory import InventorySync
from pondstack.controller.pool.remover import Remover
from pondstack.controller.pool.sanitizer import Sanitizer
from pondstack.controller.pool.shortages import Shortages
from pondstack.controller.pool.split_board import SplitBoard
from pondstack.controller.pool.split_service import SplitService
from pondstack.controller.reconcile.intake import ReportIntake
from pondstack.controller.reconcile.observation import Limits
from pondstack.controller.reconcile.reconciler import Reconciler
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.db.store import SQL
from pondstack.db.store.telemetry import Retention, Telemetry
from pondstack.devices.emulated import create_device
from pondstack.devices.identity import pool_uuid
from pondstack.domain.errors import InUse, StaleEpoch
from pondstack.domain.sizing import STATIC_AUTO_PERCENT
from pondstack.domain.units import COMPUTE_TRAIT
from pondstack.ledger.ledger import Ledger
from pondstack.prediction.serving import static_predictor
from pondstack.rpc.wire import Attached, Grant, Report
from tests.fixtures import lead
from tests.fixtures.rpc_call import call
from tests.fixtures.schema import migrate

SERIAL = "S1"
POOL = pool_uuid(SERIAL)
SLICES = 8


class FakeAgent:
    """What one host really holds, and what its agent answers."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.sequence = 0
        self.attached: dict[str, Attached] = {}
        self.released: list[str] = []
        self.not_zero: dict[str, list[int]] = {}
        self.stuck: dict[str, str] = {}
        self.lending: dict[str, Any] | None = None
        self.borrowed: dict[str, Any] | None = None
        self.commands: list[tuple[str, dict[str, Any]]] = []
        """What it was told of lent memory."""
        self.offlines: list[str] = []
        self.epoch = 0
        self.online_at: dict[str, int] = {}
        self.slow = False
        """Memory goes offline in the background: a command's answer is False, and the agent reports the end of it."""
        self.before_offline: Callable[[], object] = lambda: None
        self.up = True
        self.pools = (POOL,)
        self.hands_over = (POOL,)

    def report(self) -> Report:
        self.sequence += 1
        held = tuple(self.attached.values())
        released, stuck = tuple(self.released), dict(self.stuck)
        more = {"lending": self.lending, "borrowed": self.borrowed, "not_zero": dict(self.not_zero)}
        more["hands_over"] = self.hands_over
        return Report(self.host, self.sequence, 1, "0.1.0", self.pools, held, released, stuck, **more)

    def hold(self, grant: Grant, in_use: bool = True) -> None:
        self.attached[grant.allocation_uuid] = Attached(
            grant.allocation_uuid, grant.consumer_uuid, grant.pool_uuid, grant.extents, in_use
        )
        self.online_at[grant.allocation_uuid] = self.sequence + 1

    def let_go(self, uuid: str) -> None:
        """Take an allocation offline for good; each report tells of it."""
        self.attached.pop(uuid, None)
        self.released.append(uuid)

    def idle(self) -> None:
        self.attached = {uuid: replace(item, in_use=False) for uuid, item in self.attached.items()}

    def check(self, epoch: int) -> None:
        """Refuse what a former leader commands, as agents do."""
        if epoch < self.epoch:
            raise StaleEpoch(f"epoch {epoch} < {self.epoch}")
        self.epoch = epoch

    def offline(self, uuid: str, report_sequence: int | None = None) -> bool:
        self.before_offline()
        self.offlines.append(uuid)
        if report_sequence is not None and self.online_at.get(uuid, 0) > report_sequence:
            raise InUse(f"it came online after report {report_sequence}")
        if uuid in self.attached and self.attached[uuid].in_use:
            raise InUse("a process maps it")
        if self.slow:
            return False
        self.attached.pop(uuid, None)
        return True


class FakeAgents(dict[str, FakeAgent]):
    """The agents by host, as the controller calls them. `refuse`: those that obey no command about lent memory."""

    refuse: Collection[str] = ()

    def _get(self, host: str) -> FakeAgent:
        if not self[host].up:
            raise oslo_messaging.MessagingTimeout("no answer")
        return self[host]

    def offline(
        self, host: str, *, epoch: int, operation_id: str, allocation_uuid: str, report_sequence: int | None
    ) -> bool:
        del operation_id
        agent = self._get(host)
        agent.check(epoch)
        return agent.offline(allocation_uuid, report_sequence)

    def revoke(self, host: str, *, epoch: int, **about: Any) -> list[int]:
        return self._lent(host, "revoke", epoch, about)

    def give_back(self, host: str, *, epoch: int, **about: Any) -> list[int]:
        return self._lent(host, "give_back", epoch, about)

    def end_swap(self, host: str, *, epoch: int, consumer_uuid: str) -> bool:
        if host in self.refuse:
            raise InUse("the instance runs")
        self._get(host).check(epoch)
        return (self._get(host).borrowed or {})["swap_disks"].pop(consumer_uuid, None) is not None

    def _lent(self, host: str, verb: str, epoch: int, about: dict[str, Any]) -> list[int]:
        if host in self.refuse:
            raise oslo_messaging.MessagingTimeout("no answer")
        agent = self._get(host)
        agent.check(epoch)
        agent.commands.append((verb, about))
        return list(about["indexes"])

    def report(self, host: str, *, epoch: int) -> Report:
        agent = self._get(host)
        agent.check(epoch)
        return agent.report()


class Rack(SimpleNamespace):
    """The parts by name, and what tests do all the time."""

    def assign(self, host="h1", slices=2, consumer=None, operation_id=None, **values) -> Grant:
        request = {
            "operation_id": operation_id or str(uuid4()),
            "consumer_uuid": consumer or str(uuid4()),
            "host": host,
            "pool_uuid": POOL,
            "pool_mib": slices * 1024,
            "guest_mib": 8192,
        }
        return Grant.from_wire(call(self.endpoint.assign, **{**request, **values}))

    def online(self, host="h1", slices=2, in_use=True, **values) -> Grant:
        grant = self.assign(host, slices, **values)
        self.agents[host].hold(grant, in_use)
        call(self.endpoint.acknowledge, operation_id=str(uuid4()), allocation_uuid=grant.allocation_uuid, host=host)
        return grant

    def release(self, uuid: str, host="h1") -> None:
        """Have a host let go of an allocation and tell of it."""
        self.agents[host].let_go(uuid)
        call(self.endpoint.release, operation_id=str(uuid4()), allocation_uuid=uuid, host=host)

    def beat(self, *hosts):
        answers = []
        for agent in [self.agents[host] for host in hosts or self.agents]:
            answers.append(call(self.endpoint.heartbeat, report=agent.report().to_wire()))
            agent.check(answers[-1]["epoch"])
        return answers

    def states(self):
        return [item.state for item in self.reader.slices(POOL)]

    def count(self, state):
        return self.states().count(state)

    def reconcile(self, **limits):
        """One round with its own limits; returns the findings' codes."""
        self.limits = Limits(**{"settle_seconds": -3600.0, **limits})
        codes = [finding.code for finding in self.reconciler.run()]
        self.sanitizer.drain()
        self.notifier.run()
        return codes


def audit(placed, repair=False, settle_seconds=-3600.0, **limits):
    placed.limits = Limits(settle_seconds=settle_seconds, **limits)
    return call(placed.endpoint.audit, repair=repair)


@pytest.fixture
def device(tmp_path):
    return create_device(tmp_path / "pool0", SLICES, serial=SERIAL)


@pytest.fixture
def database(tmp_path) -> Iterator[Database]:
    made = Database.from_url(migrate(tmp_path / "ledger.db"))
    yield made
    made.dispose()


@pytest.fixture
def rack(database, device) -> Rack:
    """A rack without Placement."""
    return make_rack(database, device.path, None)


@pytest.fixture
def placed(database, device, placement) -> Rack:
    """A rack with real Placement, which has the providers of both hosts and our pool."""
    made = make_rack(database, device.path, placement)
    for host in made.agents:
        register_host(placement, host)
    made.sync.write(made.reader.rack())
    return made


def register_host(placement: Placement, host: str) -> None:
    """What nova-compute does when it starts on a new host."""
    uuid = str(uuid4())
    placement.ensure_provider(uuid, host)
    placement.ensure_trait(uuid, COMPUTE_TRAIT)


def make_rack(database: Database, path, placement: Placement | None, down_seconds: float = 20.0, more=()) -> Rack:
    """`more`: further device specs."""
    reader = SqlReader(database, down_seconds)
    ledger = Ledger(database, lead(database, "test"), down_seconds, store=SQL)
    devices = DeviceRegistry(ledger, [DeviceSpec("pool0", "emulated", str(path)), *more])
    devices.register()
    rack = Rack(
        database=database,
        reader=reader,
        ledger=ledger,
        devices=devices,
        placement=placement,
        agents=FakeAgents({host: FakeAgent(host) for host in ("h1", "h2")}),
        limits=Limits(settle_seconds=-3600.0),
        published=[],
        claims={},
        predictor=static_predictor(STATIC_AUTO_PERCENT),
    )
    rack.sanitizer = Sanitizer(ledger, reader, devices, lambda: rack.published.append("sanitizer"))
    rack.sync = InventorySync(placement, ledger) if placement else None
    rack.told = []
    rack.notifier = FailureNotifier(ledger, rack.told.append)
    rack.now = 0.0
    rack.board = SplitBoard(
        database, ledger, reader.rack, lambda _view: rack.claims, down_seconds, clock=lambda: rack.now
    )
    rack.allowance, rack.noted = None, []
    models = SimpleNamespace(
        describe=lambda: rack.predictor, allowance=lambda: rack.allowance, note=lambda items: rack.noted.extend(items)
    )
    rack.splits = SplitService(ledger, rack.board, models, 3600, clock=lambda: rack.now)
    publish = partial(rack.published.append, "endpoint")
    rack.intake = make_intake(rack, publish)
    rack.remover = Remover(ledger, reader.rack, devices, placement, rack.sync)
    rack.reconciler = Reconciler(
        ledger=ledger,
        reader=reader,
        devices=devices,
        agents=rack.agents,
        placement=placement,
        inventory=rack.sync,
        intake=rack.intake,
        limits=lambda: rack.limits,
        executor=futurist.SynchronousExecutor(),
        settled=lambda: None,
        remover=rack.remover,
        lent_inventory=LendingInventory(placement, ledger) if placement else None,
        remote_claims=RemoteClaims(placement) if placement else None,
        notify=rack.notifier.wake,
    )
    rack.endpoint = LeaderEndpoint(
        ledger=ledger,
        reader=reader,
        devices=devices,
        hand_overs=HandOvers(devices, reader, placement),
        intake=rack.intake,
        reconciler=rack.reconciler,
        splits=rack.splits,
        shortages=Shortages(ledger, reader.rack, lambda _view: rack.claims, down_seconds),
        down_seconds=down_seconds,
        publish=publish,
        store_samples=Telemetry(database, lambda: Retention(7200, 300, 7200)).write,
    )
    rack.split_endpoint = SplitEndpoint(splits=rack.splits, gate=rack.endpoint.gate)
    rack.beat()
    return rack


def make_intake(rack: Rack, publish: Callable[[], object] = lambda: None) -> ReportIntake:
    """Return one that asks the agents at once where a leader does so in the background."""
    return ReportIntake(
        rack.ledger,
        report_of=lambda host: rack.agents.report(host, epoch=rack.ledger.epoch),
        executor=futurist.SynchronousExecutor(),
        sanitize=lambda: None,
        publish=publish,
        memory=rack.devices.memory,
    )
