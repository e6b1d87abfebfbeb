"""What no notification told is read from Nova's API, once at the start and then from where the last round ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from pondstack.controller.history.backfill import OVERLAP_SECONDS, Backfill
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.db.store.history import History
from pondstack.domain.errors import NotFound, Unavailable
from pondstack.domain.history import InstanceFacts
from tests.fixtures.schema import migrate

DAY = 86400
NOW = datetime.now(UTC).replace(microsecond=0)
IMAGE = str(uuid4())
OLD = InstanceFacts(str(uuid4()), "blue", "m1", 4096, 2, IMAGE, "", "az1", "web-1", NOW - timedelta(days=90), NOW)


class NovaStandIn:
    """Pages of instances by question, and what was asked."""

    def __init__(self):
        self.alive, self.changed, self.systems = [[OLD], []], [[]], {IMAGE: "ubuntu"}
        self.asked, self.images = [], []

    def instances(self, changed_since=None):
        self.asked.append(changed_since)
        yield from self.alive if changed_since is None else self.changed

    def image_os(self, image):
        self.images.append(image)
        return self.systems.get(image, "")


@pytest.fixture
def nova():
    return NovaStandIn()


@pytest.fixture
def database(tmp_path):
    opened = Database.from_url(migrate(tmp_path / "ledger.db"))
    yield opened
    opened.dispose()


@pytest.fixture
def history(database):
    return History(database, lambda: DAY)


@pytest.fixture
def backfill(history, nova):
    return Backfill(history, nova, lambda: DAY)


def test_the_first_round_reads_all_that_lives_and_what_ended_lately(backfill, nova, database):
    gone = replace(OLD, instance_uuid=str(uuid4()), deleted_at=NOW)
    nova.changed = [[gone]]
    backfill.run()
    assert nova.asked[0] is None
    assert (datetime.now(UTC) - nova.asked[1]).total_seconds() == pytest.approx(DAY, abs=60)
    reader = SqlReader(database).history
    assert reader.lifetime(OLD.instance_uuid).deleted_at is None
    assert reader.lifetime(gone.instance_uuid).deleted_at == NOW
    assert reader.complete_since() == nova.asked[1]
    assert reader.lifetime(OLD.instance_uuid).image_os == "ubuntu"


def test_the_next_round_reads_what_changed_since(backfill, nova, history):
    backfill.run()
    until = history.read_until()
    nova.asked.clear()
    backfill.run()
    assert [int(item.timestamp()) for item in nova.asked] == [until - OVERLAP_SECONDS]


def test_a_round_that_failed_is_done_again_from_its_start(backfill, nova, history, database):
    def fail():
        yield [OLD]
        raise Unavailable("Nova is away")

    nova.instances = lambda _changed_since=None: fail()
    with pytest.raises(Unavailable):
        backfill.run()
    assert history.read_until() is None
    assert SqlReader(database).history.lifetime(OLD.instance_uuid).project_id == "blue", "what was read is kept"


def test_a_leader_that_ends_leaves_the_rest_to_the_next_one(history, nova, database):
    Backfill(history, nova, lambda: DAY, lambda: True).run()
    assert history.read_until() is None
    with pytest.raises(NotFound):
        SqlReader(database).history.lifetime(OLD.instance_uuid)


def test_an_image_that_names_no_system_is_asked_for_once(backfill, nova):
    nova.systems = {}
    backfill.run()
    backfill.run()
    assert nova.images == [IMAGE]
