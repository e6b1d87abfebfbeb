"""The lease in SQL: the contract of pondstack.ha.lease.LeaseStore, on SQLite, MariaDB and PostgreSQL."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import update

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.watch import Watch
from pondstack.db.models import Leadership
from pondstack.db.store import SQL
from pondstack.db.store.leadership import SqlLeadership, check_epoch
from pondstack.domain.errors import NotLeader
from pondstack.ha.lease import LONGEST_LEASE_SECONDS
from pondstack.ledger.ledger import Ledger
from tests.fixtures import lead
from tests.fixtures.ledgers import report
from tests.fixtures.servers import NETWORK_DATABASES

LONG = 20.0


@pytest.fixture
def store(database) -> Iterator[SqlLeadership]:
    """As a controller has it: it reads by a connection that is kept."""
    watch = Watch(database)
    yield SqlLeadership(database, watch)
    watch.close()


def ends(database, after_seconds: float) -> None:
    """Set the end of the lease to so many seconds from now."""

    def work(session) -> None:
        session.execute(update(Leadership).values(expires_at=now_seconds() + after_seconds))

    database.write(work)


def test_a_fresh_row_is_free(store):
    lease = store.read()
    assert (lease.epoch, lease.holder, lease.successor) == (0, "", "")
    assert lease.remaining_seconds <= 0


def test_taking_and_renewing(store):
    assert store.take(0, "a:1:x", LONG)
    lease = store.read()
    assert (lease.epoch, lease.holder) == (1, "a:1:x")
    assert 0 < lease.remaining_seconds <= LONG
    store.renew(1, LONG + 8)
    assert LONG < store.read().remaining_seconds <= LONG + 8


def test_a_lease_that_runs_is_not_taken(store):
    store.take(0, "a", LONG)
    assert not store.take(1, "b", LONG)
    assert store.read().holder == "a"


def test_a_lease_that_is_over_is_taken_once(store, database):
    store.take(0, "a", LONG)
    ends(database, -0.001)
    assert not store.take(0, "b", LONG)  # somebody who looked long ago
    assert store.take(1, "b", LONG)
    assert not store.take(1, "c", LONG)
    assert store.read().holder == "b"


def test_a_repeated_take_that_had_succeeded_says_so(store):
    """The answer to the first one was lost with its connection."""
    assert store.take(0, "a", LONG)
    assert store.take(0, "a", LONG)
    assert store.read().epoch == 1


def test_of_many_that_stand_at_once_one_wins(store, database):
    for expected in range(3):
        ends(database, -1)
        barrier = threading.Barrier(4)
        won = []

        def stand(number, expected=expected, barrier=barrier, won=won):
            barrier.wait(10)
            won.append(store.take(expected, f"c{number}", LONG))

        threads = [threading.Thread(target=stand, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(won) == [False, False, False, True]
        assert store.read().epoch == expected + 1


def test_an_old_epoch_renews_nothing(store, database):
    store.take(0, "a", LONG)
    ends(database, -1)
    store.take(1, "b", LONG)
    with pytest.raises(NotLeader):
        store.renew(1, LONG)
    with pytest.raises(NotLeader):
        store.hand_over(1, "c")
    assert store.read().holder == "b"


def test_a_lease_that_ran_out_untaken_is_renewed(store, database):
    """Nobody else has written: the epoch is still the newest, whatever the clock says."""
    store.take(0, "a", LONG)
    ends(database, -5)
    store.renew(1, LONG)
    assert store.read().remaining_seconds > 0


def test_handing_over_ends_the_lease_for_its_holder_too(store, database):
    store.take(0, "a", LONG)
    ledger = Ledger(database, 1, store=SQL)
    store.hand_over(1, "b")
    lease = store.read()
    assert (lease.epoch, lease.successor) == (1, "b")
    assert lease.remaining_seconds <= 0
    store.hand_over(1, "b")  # after a lost connection
    for write in (lambda: store.renew(1, LONG), lambda: ledger.hosts.heartbeat(report("h1"))):
        with pytest.raises(NotLeader):
            write()
    assert store.read().remaining_seconds <= 0
    assert store.take(1, "b:1:x", LONG)
    assert store.read().successor == ""


def test_a_clock_that_was_set_back_does_not_lock_everybody_out(store, database):
    """The end was written an hour ahead of the present clock: no lease lasts so long, so it is over."""
    store.take(0, "a", LONG)
    ends(database, LONGEST_LEASE_SECONDS + 3600)
    assert store.read().remaining_seconds <= 0
    assert store.take(1, "b", LONG)


def test_a_clock_that_jumped_ahead_costs_the_lease_and_nothing_else(store, database):
    """The lease seems over and is taken; the former leader is refused at its first statement."""
    store.take(0, "a", LONG)
    former = Ledger(database, 1, store=SQL)
    ends(database, -3600)
    assert store.take(1, "b", LONG)
    with pytest.raises(NotLeader):
        former.hosts.heartbeat(report("h1"))


def test_every_write_renews_and_says_since_when(database, store):
    """The moment is that before the transaction began: the lease cannot be shorter than its holder believes."""
    moments = iter([1.0, 2.0, 3.0, 4.0])
    heard = []
    epoch = lead(database)
    ends(database, 0.5)
    ledger = Ledger(
        database,
        epoch,
        lease_seconds=LONG,
        clock=lambda: next(moments),
        renewed=lambda epoch, started: heard.append((epoch, started)),
        store=SQL,
    )
    ledger.renew()
    assert heard == [(epoch, 2.0)]
    assert store.read().remaining_seconds > LONG / 2


def test_a_refused_write_renews_nothing(database):
    heard = []
    ledger = Ledger(database, lead(database), renewed=lambda *noted: heard.append(noted), store=SQL)
    lead(database, "newer")
    with pytest.raises(NotLeader):
        ledger.renew()
    assert heard == []


@pytest.mark.parametrize("url", NETWORK_DATABASES, indirect=True)
def test_a_leader_asleep_within_a_transaction_keeps_nobody_waiting(url, database, store):
    """The server rolls its transaction back and lets the row go; what it wanted to commit is refused when it wakes.

    (SQLite has no server that could: a pause within a write holds the file, which doc/source/admin/ha.md says.)
    """
    store.take(0, "a", LONG)
    ends(database, -1)
    asleep, wake, tries = threading.Event(), threading.Event(), []

    def work(session) -> None:
        tries.append(1)
        check_epoch(session, 1)
        asleep.set()
        assert wake.wait(60)
        session.execute(update(Leadership).values(holder="harm"))

    outcome = []

    def write() -> None:
        try:
            database.write(work)
        except NotLeader as error:
            outcome.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    assert asleep.wait(60)
    assert store.take(1, "b", LONG)
    wake.set()
    thread.join(60)
    assert len(outcome) == 1
    assert len(tries) == 2
    assert (store.read().epoch, store.read().holder) == (2, "b")
    del url
