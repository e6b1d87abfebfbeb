"""What the leader does for quality: it tells of each mitigation, and takes in what tenants measure."""

import queue
from dataclasses import replace
from types import SimpleNamespace
from uuid import uuid4

import pytest

from pondstack.controller.gate import Gate
from pondstack.controller.leader.mitigation_notifier import MitigationNotifier
from pondstack.controller.leader.qos_endpoint import QosEndpoint
from pondstack.controller.leader.quality import Quality
from pondstack.db.connection.engine import Database
from pondstack.db.read.qos import SqlQos
from pondstack.db.store import mitigations
from pondstack.domain.errors import BadRequest, Conflict, NotLeader, Unavailable
from pondstack.domain.mitigation import Mitigation, MitigationMethod, MitigationState, MitigationTrigger
from pondstack.ha.lease import LONGEST_LEASE_SECONDS
from pondstack.telemetry.metrics import Counts
from pondstack.tests.controller.conftest import call
from pondstack.tests.qos.test_monitor import OPTIONS, VMS
from pondstack.tests.qos.test_monitor import Rack as Watched
from tests.fixtures.schema import migrate

VM = "0635cccd-1e78-5473-b66a-bacffc433357"


@pytest.fixture
def world(rack):
    """A notifier and what it sent; `fail` fails the next sends, `former` makes it a former leader's."""
    told = SimpleNamespace(sent=[], fail=[], former=False, database=rack.database)

    def send(event):
        if told.fail:
            raise told.fail.pop()
        told.sent.append((event.record.consumer_uuid, event.kind, event.uuid))

    def fence(_session):
        if told.former:
            raise NotLeader("another one leads")

    told.notifier = MitigationNotifier(rack.database, send, fence)
    told.anew = lambda: MitigationNotifier(rack.database, send, fence)
    return told


def begin(world):
    item = Mitigation(
        str(uuid4()),
        VM,
        "h1",
        "p",
        MitigationMethod.COPY,
        MitigationState.CLAIMING,
        MitigationTrigger.MONITOR,
        False,
        1024,
        1024,
    )
    world.database.write(lambda session: mitigations.add(session, item))
    return item


def end(world, item, state):
    ended = replace(item, state=state)
    world.database.write(lambda session: mitigations.change(session, ended, moved=True, ended=True))


def kinds(world):
    return [kind for _, kind, _ in world.sent]


@pytest.mark.parametrize(("state", "kind"), [("done", "end"), ("aborted", "end"), ("failed", "error")])
def test_its_start_and_its_end_are_told_once_each(world, state, kind):
    item = begin(world)
    for _ in range(2):
        world.notifier.run()
    assert kinds(world) == ["start"]
    end(world, item, MitigationState(state))
    for notifier in (world.notifier, world.anew()):
        notifier.run()
    assert kinds(world) == ["start", kind]
    assert len({uuid for _, _, uuid in world.sent}) == 2


def test_one_that_ended_before_anybody_looked_is_told_whole(world):
    end(world, begin(world), MitigationState.DONE)
    world.notifier.run()
    assert kinds(world) == ["start", "end"]


def test_what_could_not_be_sent_is_sent_later(world):
    begin(world)
    world.fail = [Unavailable("no broker")]
    with pytest.raises(Unavailable):
        world.notifier.run()
    assert world.sent == []
    world.notifier.run()
    assert kinds(world) == ["start"]


def test_a_former_leader_sends_nothing(world):
    begin(world)
    world.former = True
    with pytest.raises(NotLeader):
        world.notifier.run()
    world.notifier.run()
    assert world.sent == []


@pytest.fixture
def endpoint(rack):
    made = QosEndpoint(ledger=rack.ledger, gate=Gate())

    def record(operation="one", **values):
        given = {"metric": "p99_ms", "value": 10.0, "higher_is_better": False, **values}
        call(made.record_performance, operation_id=operation, consumer_uuid=VM, project_id="p", **given)
        return {item.metric: item for item in SqlQos(rack.database).performances(VM)}

    return record


def test_a_reading_counts_once(endpoint):
    endpoint()
    assert endpoint()["p99_ms"].readings == 1


def test_readings_come_to_a_mean(endpoint, monkeypatch):
    monkeypatch.setattr("pondstack.db.store.qos.LEAST_SECONDS", 0.0)
    endpoint()
    found = endpoint("two", value=20.0)["p99_ms"]
    assert (found.readings, found.mean, found.newest) == (2, 15.0, 20.0)
    assert endpoint("three", value=5.0, higher_is_better=True)["p99_ms"].mean == 5.0


def test_neither_too_often_nor_too_many_nor_what_is_no_figure(endpoint):
    endpoint()
    with pytest.raises(Conflict, match="less than 60 s old"):
        endpoint("two")
    for number in range(7):
        endpoint(f"more {number}", metric=f"m{number}")
    with pytest.raises(Conflict, match="8 metrics already"):
        endpoint("nine", metric="m8")
    with pytest.raises(BadRequest, match="no figure"):
        endpoint("nan", value=float("nan"))


class Began:
    """Stands in for the leader's mitigations: notes what begins."""

    def __init__(self):
        self.calls = queue.Queue()

    def begin(self, consumer_uuid, **values):
        self.calls.put((consumer_uuid, values))


def test_the_leader_watches_by_itself_and_what_is_found_begins(tmp_path):
    """Without a model: who is not known to be insensitive is taken for sensitive, the worst first."""
    database = Database.from_url(migrate(tmp_path / "ledger.db"))
    rack = Watched(database)
    group = {**OPTIONS, "unknown_sensitivity": "mitigate", "keep_decisions_seconds": 86400}
    group |= {"interval_seconds": 3600, "repredict_seconds": 3600, "repredict_after_seconds": 86400}
    conf = SimpleNamespace(
        qos=SimpleNamespace(**group, repredict_margin_percent=10.0),
        ha=SimpleNamespace(lease_seconds=LONGEST_LEASE_SECONDS),
        telemetry=SimpleNamespace(period_seconds=300),
        model=SimpleNamespace(target_percent=98.0, over_prediction_percent=2.0, false_positive_percent=2.0),
    )
    counts = Counts()
    resources = SimpleNamespace(
        conf=conf, database=database, reader=rack.reader, notify_mitigated=lambda _event: None, counts=counts
    )
    began = Began()
    quality = Quality(resources, rack.ledger, Gate(), began, lambda: None)
    quality.start()
    try:
        found = dict(began.calls.get(timeout=60) for _ in range(2))
    finally:
        quality.stop()
        database.dispose()
    assert set(found) == {VMS["slow"], VMS["fast"]}
    given = found[VMS["slow"]]
    assert (given["trigger"], given["forced"], given["method"]) == (MitigationTrigger.MONITOR, False, None)
    assert given["evidence"]["touched_mib"] == 1024.0
    assert quality.monitor.verdicts == {"unknown": 2, "fits": 1}
    samples = [item for family in counts.collect() for item in family.samples if item.name.endswith("_total")]
    assert {tuple(item.labels.values()): item.value for item in samples}["unknown", "mitigate", "on"] == 2.0
