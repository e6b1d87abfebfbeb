"""A round of the monitor over a real ledger: what is kept, what is begun, and what comes of it for the models."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from sqlalchemy import delete

from pondstack.db.models import SplitRow
from pondstack.db.read.reader import SqlReader
from pondstack.db.store import SQL, qos, splits
from pondstack.db.store.history import History
from pondstack.db.store.telemetry import Retention, Telemetry
from pondstack.domain.errors import BadRequest, Conflict, NotLeader
from pondstack.domain.history import InstanceFacts, Selection
from pondstack.domain.requests import AssignRequest
from pondstack.domain.sizing import CORRECTED, Split
from pondstack.ledger.ledger import Ledger
from pondstack.ledger.store import RememberedSplit
from pondstack.prediction.budget import tallies
from pondstack.prediction.examples import examples
from pondstack.prediction.features import records
from pondstack.qos.monitor import Monitor
from pondstack.qos.pace import Past
from pondstack.rpc.wire import Sample
from tests.fixtures import lead
from tests.fixtures.ledgers import POOL, report

from .builders import says

NOW = datetime.now(UTC)
VMS = {name: str(uuid4()) for name in ("slow", "fast", "idle")}
OPTIONS = {
    "mode": "on",
    "fresh_seconds": 900,
    "touched_percent": 5.0,
    "touched_mib": 64,
    "pdm_percent": 5.0,
    "unknown_sensitivity": "leave",
    "host_per_hour": 10,
    "rack_per_hour": 10,
    "host_at_a_time": 10,
    "rack_at_a_time": 10,
    "quiet_hours": [],
}


class Rack:
    """A ledger with three VMs of two slices each, of which two touched theirs; one of these is slowed down."""

    def __init__(self, database):
        self.database = database
        self.ledger = Ledger(database, lead(database, "test"), store=SQL)
        self.reader = SqlReader(database)
        self.past, self.begun, self.error = [], [], None
        self.conf = SimpleNamespace(qos=SimpleNamespace(**OPTIONS))
        self._fill()
        self.monitor = self.make()

    def make(self, fence=lambda _session: None):
        said = says({VMS["slow"]: 30.0, VMS["fast"]: 1.0})
        return Monitor(self.conf, self.database, lambda: said, lambda: self.past, self._begin, fence)

    def _begin(self, guest, evidence):
        if self.error:
            raise self.error
        self.begun.append((guest.consumer_uuid, evidence))

    def _fill(self):
        self.ledger.pools.register(
            uuid=POOL, name="pool0", serial="S1", driver="fake", address={}, slice_mib=1024, slices_total=8
        )
        self.ledger.hosts.heartbeat(report("h1"))
        telemetry = Telemetry(self.database, lambda: Retention(7200, 300, 7200, 900))
        history = History(self.database, lambda: 86400)
        begun = NOW - timedelta(hours=1)
        for name, uuid in VMS.items():
            history.record([InstanceFacts(uuid, "p", "m1", 8192, 4, "", "", "", name, begun, begun)])
            operation = str(uuid4())
            request = AssignRequest(uuid, "h1", POOL, 2048, guest_mib=8192, project_id="p")
            allocation = self.ledger.slices.assign(operation, request)["allocation_uuid"]
            self.ledger.slices.acknowledge(operation, allocation, "h1")
            split = Split(6144, 2048, "untouched", 0.98, "", "um-1", {"pdm": 5})
            self.ledger.remember_splits([RememberedSplit(uuid, "f", split, 0.0)])
            left = {None: 2048.0, 1: 2048.0} if name == "idle" else {None: 1024.0, 1: 1024.0}
            telemetry.write(
                "h1", [Sample(uuid, "untouched_mib", node, 60.0, 1, *[mib] * 3) for node, mib in left.items()]
            )

    def kept(self):
        found = self.database.read(qos.decisions)
        return {
            (name, item.verdict, item.action)
            for item in found
            for name, uuid in VMS.items()
            if uuid == item.consumer_uuid
        }


@pytest.fixture
def rack(tmp_path):
    from pondstack.db.connection.engine import Database
    from tests.fixtures.schema import migrate

    database = Database.from_url(migrate(tmp_path / "ledger.db"))
    yield Rack(database)
    database.dispose()


def test_who_suffers_is_mitigated_and_what_was_decided_is_kept(rack):
    rack.monitor.run()
    assert [uuid for uuid, _ in rack.begun] == [VMS["slow"]]
    assert rack.begun[0][1]["slowdown_percent"] == 30.0
    assert rack.kept() == {("slow", "sensitive", "mitigate"), ("fast", "insensitive", "leave")}
    (found,) = rack.database.read(lambda session: qos.decisions(session, consumer_uuid=VMS["slow"]))
    assert (found.evidence["touched_mib"], found.untouched_mib, found.mode) == (1024.0, 1024.0, "on")


def test_the_same_is_kept_once_also_by_the_next_leader(rack):
    for _ in range(2):
        rack.monitor.run()
    rack.make().run()
    assert len(rack.database.read(qos.decisions)) == 2


def test_a_dry_run_keeps_its_decisions_and_begins_nothing(rack):
    rack.conf.qos.mode = "dry_run"
    rack.monitor.run()
    assert rack.begun == []
    assert ("slow", "sensitive", "would_mitigate") in rack.kept()


def test_off_is_off(rack):
    rack.conf.qos.mode = "off"
    rack.monitor.run()
    assert (rack.begun, rack.kept()) == ([], set())


def test_at_most_once_until_it_is_forced(rack):
    rack.past = [Past(VMS["slow"], "h1", False, 7200.0)]
    rack.monitor.run()
    assert rack.begun == []
    assert ("slow", "sensitive", "once") in rack.kept()


def test_one_that_cannot_begin_is_tried_again(rack):
    rack.error = Conflict("Nova works on it")
    rack.monitor.run()
    assert ("slow", "sensitive", "refused") in rack.kept()
    rack.error = None
    rack.monitor.run()
    assert [uuid for uuid, _ in rack.begun] == [VMS["slow"]]


def test_a_decision_is_kept_before_it_is_carried_out(rack):
    """A leader that ends meanwhile has kept the label: of a VM whose mitigation is under way nothing is decided."""
    rack.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        rack.monitor.run()
    assert rack.kept() == {("slow", "sensitive", "mitigate")}


def test_one_that_is_refused_again_and_again_is_kept_twice(rack):
    rack.error = Conflict("Nova works on it")
    for _ in range(3):
        rack.monitor.run()
    found = rack.database.read(lambda session: qos.decisions(session, consumer_uuid=VMS["slow"]))
    assert [item.action for item in found] == ["refused", "mitigate"]


def test_a_former_leader_keeps_nothing_and_ends(rack):
    def fence(_session):
        raise NotLeader("another one leads")

    with pytest.raises(NotLeader):
        rack.make(fence).run()
    assert rack.kept() == set()
    rack.error = NotLeader("another one leads")
    with pytest.raises(NotLeader):
        rack.monitor.run()


def test_wrong_quiet_hours_are_an_error_that_begins_nothing(rack):
    rack.conf.qos.quiet_hours = ["noon"]
    with pytest.raises(BadRequest, match="quiet_hours"):
        rack.monitor.run()
    assert rack.begun == []


def lifetimes(rack):
    chosen = Selection(NOW - timedelta(days=1), datetime.now(UTC) + timedelta(minutes=1), min_coverage=0.5)
    return {item.instance_uuid: item for item in rack.reader.history.lifetimes(chosen)}


def test_a_decision_is_a_labelled_example_at_once(rack):
    """An hour old, seen once: without the monitor's word it would say nothing until tomorrow."""
    before = lifetimes(rack)
    assert before[VMS["slow"]].untouched_mib is None
    rack.monitor.run()
    found = lifetimes(rack)
    assert found[VMS["idle"]].untouched_mib is None
    assert (found[VMS["slow"]].untouched_mib, found[VMS["slow"]].judged[1]) == (1024, 1024)
    now = datetime.now(UTC)
    assert [item.share for item in examples(list(found.values()), now, 0.5)] == [0.125, 0.125]
    assert [item.share for item in records(found.values(), now, 0.5)] == [0.125, 0.125]


def test_the_over_prediction_counts_after_its_pool_memory_and_its_split_are_gone(rack):
    """The split is marked corrected, and forgotten later: the model's account must not forget what it did."""

    def failed():
        decided = rack.reader.history.decided(NOW - timedelta(days=1), 0.5)
        return tallies(decided, {}, 86400.0)["um-1"].failed

    assert failed() == 2
    rack.monitor.run()
    local = RememberedSplit(VMS["slow"], "f", Split(8192, 0, CORRECTED, 1.0, "mitigated"))
    rack.database.write(lambda session: splits.correct(session, local))
    assert failed() == 2
    mine = SplitRow.instance_uuid == VMS["slow"]
    rack.database.write(lambda session: session.execute(delete(SplitRow).where(mine)))
    assert failed() == 2
