"""PostgreSQL with a synchronous standby: what a dead or frozen primary and a dead standby do to the ledger."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from sqlalchemy import text

from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.store.leadership import SqlLeadership
from pondstack.domain.errors import Unavailable
from pondstack.tests.db.stream import Stream, fill
from pondstack.tests.ledger.test_ledger import request
from pondstack_rack.servers import LOOPBACK
from pondstack_rack.wait import wait_until
from tests.fixtures import lead

pytestmark = pytest.mark.functional


@pytest.fixture
def url(postgresql_pair) -> Iterator[str]:
    name = f"p_{uuid4().hex[:8]}"
    made = postgresql_pair.database_url(name)
    database = Database.from_url(made, 30)
    migration.sync(database)
    database.dispose()
    yield made
    postgresql_pair.start().drop_database(name)


@pytest.fixture
def opened(postgresql_pair, url) -> Iterator[Callable[..., Database]]:
    """Open the database with both servers as hosts."""
    made: list[Database] = []

    def open_it(**arguments) -> Database:
        values = {"connect_seconds": 1.0, "answer_seconds": 5.0, "retry_seconds": 30, "hosts": postgresql_pair.hosts}
        made.append(Database.from_url(url, **{**values, **arguments}))
        return made[-1]

    yield open_it
    for database in made:
        database.dispose()


def test_a_killed_primary_loses_and_doubles_nothing(postgresql_pair, opened):
    database = opened()
    with Stream(fill(database, lead(database))) as stream:
        stream.wait_for(60)
        postgresql_pair.kill_primary()
        postgresql_pair.promote()
        stream.wait_for(60)
    print(f"writes went on {stream.longest_gap():.2f} s after the kill of the PostgreSQL primary")
    stream.verify(database)


def test_an_old_primary_that_comes_back_acknowledges_nothing(postgresql_pair, opened):
    """It waits for a standby that follows another server now; reading from it is another matter (databases.md)."""
    pair = postgresql_pair
    old = pair.primary
    database = opened(hosts=[f"{LOOPBACK}:{member.port}" for member in (old, pair.standby)], answer_seconds=2.0)
    ledger = fill(database, lead(database))
    pair.kill_primary()
    pair.promote()
    old.start()
    impatient = opened(hosts=[f"{LOOPBACK}:{old.port}"], retry_seconds=0, answer_seconds=0.5)
    with pytest.raises(Unavailable):
        impatient.write(lambda session: session.execute(text("UPDATE leadership SET epoch = epoch + 1")))
    # The ledger comes to the old one first, is not answered, and repeats the operation on the new one.
    database.dispose()
    operation_id = str(uuid4())
    wanted = request(1)
    ledger.slices.assign(operation_id, wanted)
    pair.rejoin()
    assert ledger.slices.assign(operation_id, wanted)["extents"] == [{"start": 0, "count": 1}]


def test_a_standby_is_passed_over(postgresql_pair, opened):
    pair = postgresql_pair
    hosts = [f"{LOOPBACK}:{member.port}" for member in (pair.standby, pair.primary)]
    database = opened(hosts=hosts)
    assert database.read(lambda session: session.execute(text("SELECT pg_is_in_recovery()")).scalar_one()) is False
    only_standby = opened(hosts=hosts[:1], retry_seconds=0)
    with pytest.raises(Unavailable, match="in recovery"):
        only_standby.ping()


def test_a_primary_that_is_made_read_only_is_left(postgresql_pair, opened):
    """As an arbiter fences it; with the standby not promoted yet there is nobody to go to."""
    primary = postgresql_pair.primary
    database = opened(retry_seconds=0)
    ledger = fill(database, lead(database))
    primary.set("default_transaction_read_only", "on")
    try:
        assert wait_until(lambda: primary.execute("SHOW default_transaction_read_only") == [("on",)], 10)
        with pytest.raises(Unavailable, match="read-only transaction"):  # 25006 on a connection of the pool
            ledger.slices.assign(str(uuid4()), request(1))
        with pytest.raises(Unavailable, match=r"in recovery.*read only|read only.*in recovery"):
            ledger.slices.assign(str(uuid4()), request(1))
    finally:
        primary.set("default_transaction_read_only", "off")
    assert wait_until(lambda: primary.execute("SHOW default_transaction_read_only") == [("off",)], 10)
    ledger.slices.assign(str(uuid4()), request(1))


def test_a_dead_standby_makes_commits_wait_and_none_is_lost(postgresql_pair, opened):
    database = opened(retry_seconds=0, answer_seconds=1.0)
    ledger = fill(database, lead(database))
    postgresql_pair.kill_standby()
    wanted, operation_id = request(1), str(uuid4())
    started = time.monotonic()
    with pytest.raises(Unavailable):
        ledger.slices.assign(operation_id, wanted)
    assert time.monotonic() - started < 15
    postgresql_pair.start()

    def assigned() -> bool:
        try:
            return bool(ledger.slices.assign(operation_id, wanted))
        except Unavailable:
            return False

    assert wait_until(assigned, 20, 0.05)
    counted = database.read(lambda session: session.execute(text("SELECT count(*) FROM allocations")).scalar_one())
    assert counted == 1


def test_a_frozen_primary_does_not_hold_a_renewal_up(postgresql_pair, opened):
    database = opened(retry_seconds=0, answer_seconds=1.0)
    store = SqlLeadership(database)
    epoch = lead(database)
    store.renew(epoch, 1.5)
    postgresql_pair.primary.freeze()
    try:
        started = time.monotonic()
        with pytest.raises(Unavailable):
            store.renew(epoch, 1.5)
        assert time.monotonic() - started < 15
    finally:
        postgresql_pair.primary.thaw()
    database.dispose()
    store.renew(epoch, 1.5)
