"""Whole controllers in this process, over SQLite, an emulated device and oslo.messaging's in-memory bus."""

import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from oslo_config import cfg
from sqlalchemy import text, update

from pondstack.controller.leader.leader import Leader
from pondstack.controller.node.node import Node
from pondstack.controller.service import register_opts
from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.models import Leadership
from pondstack.db.store.telemetry import LATE_SECONDS
from pondstack.devices.emulated import EmulatedDevice, create_device
from pondstack.devices.identity import pool_uuid
from pondstack.domain.errors import BadRequest, Conflict, NotFound, NotLeader, Unavailable
from pondstack.domain.requests import AssignRequest
from pondstack.domain.states import SliceState
from pondstack.rpc import transport
from pondstack.rpc.controller_api import ControllerAPI
from pondstack.rpc.identity.identity import Role
from pondstack.rpc.wire import Report, Sample
from pondstack_rack.wait import wait_until
from tests.fixtures import lead

SECONDS = 60.0
CALM_LEASE_SECONDS = 15.0
SERIAL = "nodes"
POOL = pool_uuid(SERIAL)

CONFIGURATION = """
[DEFAULT]
transport_url = fake:/
[database]
connection = sqlite:///{folder}/ledger.db
[controller]
name = {name}
pool_devices = pool0=emulated:{folder}/pool0
[placement]
enabled = false
[nova]
notifications = false
[ha]
# Longer than a busy machine stalls: no test here is about that.
lease_seconds = {lease}
node_down_seconds = 30.0
renew_seconds = 0.25
poll_seconds = 0.05
follow_seconds = 0.05
node_report_seconds = 0.1
promotion_report_seconds = 0.1
"""


class Clock:
    """A controller's clock, and how much a test has put it on."""

    def __init__(self, real: Callable[[], float], later: float) -> None:
        self._real = real
        self.later = later

    def __call__(self) -> float:
        return self._real() + self.later


class Nodes(dict[str, Node]):
    """The controllers by name, and how to start one."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        database = Database.from_conf(self.conf("any"))
        migration.sync(database)
        database.dispose()

    def conf(self, name: str, **ha: float) -> cfg.ConfigOpts:
        path = self.folder / f"{name}.conf"
        path.write_text(CONFIGURATION.format(folder=self.folder, name=name, lease=CALM_LEASE_SECONDS))
        conf = cfg.ConfigOpts()
        conf([], project="pondstack", default_config_files=[str(path)], default_config_dirs=[])
        register_opts(conf)
        for option, value in ha.items():
            conf.set_override(option, value, group="ha")
        return conf

    def begin(self, name: str, **ha: float) -> Node:
        self[name] = node = Node(self.conf(name, **ha))
        node.start()
        return node

    def freeze(self, name: str) -> None:
        """Have a controller's lease thread stand still, as a pause does, until its lease is over; the rest goes on.

        So its other threads must not move the lease's end away by what they write, every few seconds on a busy machine.
        """
        node = self[name]
        assert node._lease_worker.stop(SECONDS)
        node.leader.ledger._transactions._lease = 0.0
        node.candidate._renewed = math.inf
        node.candidate._clock = Clock(node.candidate._clock, CALM_LEASE_SECONDS)
        over = update(Leadership).values(expires_at=1.0)
        node.resources.database.write(lambda session: session.execute(over))


@pytest.fixture
def device(tmp_path: Path) -> EmulatedDevice:
    return create_device(tmp_path / "pool0", 4, serial=SERIAL)


@pytest.fixture
def nodes(tmp_path: Path, device: EmulatedDevice) -> Iterator[Nodes]:
    del device
    made = Nodes(tmp_path)
    yield made
    for node in made.values():
        node.stop()


@pytest.fixture
def pair(nodes: Nodes) -> Nodes:
    """`one` leads, `two` stands by and is listed."""
    assert nodes.begin("one").wait_until_leading(SECONDS)
    nodes.begin("two")
    assert eventually(lambda: roles(nodes["one"]) == {"one": "leader", "two": "standby"})
    return nodes


@pytest.fixture
def api(nodes: Nodes) -> Iterator[ControllerAPI]:
    bus = transport.get_transport(nodes.conf("client"), Role.API)
    yield ControllerAPI(bus, timeout_seconds=SECONDS)
    bus.cleanup()


def eventually(condition: Callable[[], bool]) -> bool:
    return wait_until(condition, SECONDS, 0.02)


def roles(node: Node) -> dict[str, str]:
    return {item.name: item.role for item in node.resources.reader.controllers()}


def beat(api: ControllerAPI, host: str = "h1", sequence: int = 1) -> dict:
    return api.heartbeat(Report(host, sequence, 0, "0.1.0", pools=(POOL,)))


def assign(api: ControllerAPI, operation_id: str, consumer: str):
    return api.assign(operation_id, AssignRequest(consumer, "h1", POOL, pool_mib=1024, guest_mib=4096))


def test_a_controller_alone_leads_and_hands_over_at_its_stop(nodes, api) -> None:
    first = nodes.begin("one")
    assert first.wait_until_leading(SECONDS)
    assert beat(api)["epoch"] == 1
    nodes.pop("one").stop()
    again = nodes.begin("one")
    assert again.wait_until_leading(SECONDS)
    assert beat(api, sequence=2)["epoch"] == 2
    assert roles(again) == {"one": "leader"}


def leading(node: Node) -> dict[str, float]:
    """Return what a controller tells Prometheus of itself, and how many metrics it tells of pools."""
    found = {family.name: family.samples for family in node.metrics.scrape.collect()}
    own = {name: found[f"pondstack_{name}"][0].value for name in ("leading", "epoch")}
    return own | {"pools": len(found.get("pondstack_slices", ()))}


def test_who_leads_tells_prometheus_of_the_rack(pair) -> None:
    assert leading(pair["two"]) == {"leading": 0.0, "epoch": 0.0, "pools": 0}
    assert leading(pair["one"]) == {"leading": 1.0, "epoch": 1.0, "pools": len(SliceState)}
    pair.freeze("one")
    assert leading(pair["one"])["leading"] == 0.0, "its lease is over, though it has not noticed"
    assert pair["two"].wait_until_leading(SECONDS)
    assert leading(pair["two"]) == {"leading": 1.0, "epoch": 2.0, "pools": len(SliceState)}


def test_a_leader_that_stands_still_is_followed_and_lives_on(pair, api, device) -> None:
    beat(api)
    operation_id, consumer = str(uuid4()), str(uuid4())
    before = assign(api, operation_id, consumer)
    former = pair["one"].leader
    pair.freeze("one")
    assert pair["two"].wait_until_leading(SECONDS)
    after = assign(api, operation_id, consumer)
    assert (after.allocation_uuid, after.extents) == (before.allocation_uuid, before.extents)
    assert after.epoch == before.epoch + 1
    with pytest.raises(NotLeader):
        former.ledger.renew()
    with pytest.raises(NotLeader), former.gate.passing():
        pytest.fail("a former leader lets nobody in")
    pair["one"].candidate.tick()  # it wakes
    assert eventually(lambda: pair["one"].leader is None)
    assert {entry.epoch for entry in device.permissions().values()} == {after.epoch}
    assert assign(api, operation_id, consumer).epoch == after.epoch


def test_a_deposed_leader_may_be_elected_again(pair, api) -> None:
    for leader, to in (("one", "two"), ("two", "one"), ("one", None)):
        pair[leader].failover(to)
        assert pair[to or "two"].wait_until_leading(SECONDS)
        assert eventually(lambda leader=leader: pair[leader].leader is None)
        assert eventually(lambda leader=leader: roles(pair["one"])[leader] == "standby")
    assert beat(api)["epoch"] == 4


def test_a_hand_over_is_refused_where_it_makes_no_sense(pair, nodes) -> None:
    with pytest.raises(NotFound):
        pair["one"].failover("three")
    with pytest.raises(Conflict, match="leads already"):
        pair["one"].failover("one")
    with pytest.raises(NotLeader):
        pair["two"].failover("one")
    nodes.pop("two").stop()
    with pytest.raises(Conflict, match="two is down"):
        pair["one"].failover("two")
    with pytest.raises(Conflict, match="no other controller stands by"):
        pair["one"].failover(None)
    assert pair["one"].leader is not None


def test_a_stand_by_tells_what_the_leader_wrote(pair, api) -> None:
    beat(api)
    assign(api, str(uuid4()), str(uuid4()))

    def told() -> bool:
        view, epoch = pair["two"]._view()
        return epoch == 1 and set(view.hosts) == {"h1"} and len(view.allocations) == 1

    assert eventually(told)
    assert eventually(lambda: all(item.lag == 0 for item in pair["two"].resources.reader.controllers()))


def test_a_view_that_is_not_fresh_is_refused(pair) -> None:
    node = pair["two"]
    assert node._follow_worker.stop(SECONDS)
    now = node.follower._clock()
    node.follower._clock = lambda: now + 3600
    with pytest.raises(Unavailable, match="not fresh"):
        node._view()


def test_the_warm_view_is_compared_with_the_tables(pair, api) -> None:
    beat(api)
    assign(api, str(uuid4()), str(uuid4()))
    follower = pair["two"].follower
    assert pair["two"]._follow_worker.stop(SECONDS)
    assert follower.verify() == 0


def test_a_promotion_that_fails_is_tried_again(nodes, monkeypatch) -> None:
    opened = []
    real = Leader.open

    def opens(self: Leader) -> None:
        opened.append(self.epoch)
        if len(opened) < 3:
            raise Unavailable("the database stutters")
        real(self)

    monkeypatch.setattr(Leader, "open", opens)
    assert nodes.begin("one").wait_until_leading(SECONDS)
    assert opened == [1, 1, 1]


def test_a_promotion_that_cannot_succeed_leaves_the_lead_to_others(nodes, monkeypatch) -> None:
    real = Leader.open

    def opens(self: Leader) -> None:
        if self._conf.controller.name == "one":
            raise RuntimeError("a bug")
        real(self)

    monkeypatch.setattr(Leader, "open", opens)
    nodes.begin("one")
    assert eventually(lambda: nodes["one"].candidate.epoch is None and bool(nodes["one"]._children))
    assert nodes.begin("two").wait_until_leading(SECONDS)
    assert nodes["one"].leader is None


def test_losing_the_lead_during_the_promotion(nodes, monkeypatch) -> None:
    """Somebody has the next epoch before this one has opened: it never answers under the old one."""
    real = Leader.open
    opened = []

    def opens(self: Leader) -> None:
        opened.append(self.epoch)
        if self.epoch == 1:
            lead(self._resources.database, "another")
        real(self)

    monkeypatch.setattr(Leader, "open", opens)
    node = nodes.begin("one")
    assert node.wait_until_leading(SECONDS)
    assert opened == [1, 3]
    assert node.leader.epoch == 3


def test_two_of_one_name_are_noticed(pair, nodes, caplog) -> None:
    twin = Node(nodes.conf("two"))
    with caplog.at_level(logging.ERROR):
        twin._report()
        assert eventually(lambda: "give each controller its own [controller] name" in caplog.text)
    twin.resources.close()
    del pair


def test_terms_that_cannot_work_are_refused_at_the_start(nodes) -> None:
    with pytest.raises(BadRequest, match="renew_seconds"):
        Node(nodes.conf("one", lease_seconds=1.0, renew_seconds=0.9))


def test_a_controller_newer_than_the_schema_does_not_stand(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    """Elected, it could not be promoted, and nobody would lead."""
    database = Database.from_conf(nodes.conf("any"))

    def set_version(version: str) -> None:
        database.write(
            lambda session: session.execute(text("UPDATE alembic_version SET version_num = :v"), {"v": version})
        )

    set_version("0001")
    node = nodes.begin("one")
    assert eventually(lambda: "run `pondstack-manage db sync`" in caplog.text)
    assert node.candidate.epoch is None
    set_version(migration.head())
    assert node.wait_until_leading(SECONDS)
    assert node.candidate.epoch == 1
    database.dispose()


def test_a_leader_keeps_telemetry_and_sums_up_what_is_complete(pair: Nodes, api: ControllerAPI) -> None:
    guest = str(uuid4())
    # Its hour is complete at whatever minute this runs.
    age = 3600.0 + LATE_SECONDS
    api.telemetry(host="h1", samples=[Sample(guest, "untouched_mib", None, age, 1, 7.0, 7.0, 7.0)])
    reader = pair["one"].resources.reader
    assert [item.mean for item in reader.telemetry(guest)] == [7.0]
    # Housekeeping begins with a promotion, and goes on every ten minutes. Whether the first leader's came before the
    # sample or after it is open; the second one's comes after it.
    api.failover(leader="one", to="two")
    assert eventually(lambda: [item.mean for item in reader.telemetry(guest, history="periods")] == [7.0])
