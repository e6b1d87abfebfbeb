"""Galera: any node may die or freeze, any two controllers may use different nodes, and the fence holds across nodes."""

import threading
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from oslo_db.exception import DBError
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from pondstack.db.connection import migration, retry
from pondstack.db.connection.engine import Database
from pondstack.db.models import OperationRow
from pondstack.db.store import journal
from pondstack.db.store.leadership import SqlLeadership, check_epoch
from pondstack.domain.causes import Cause
from pondstack.domain.errors import NotLeader, Unavailable
from pondstack.tests.db.stream import Stream, fill
from pondstack.tests.ledger.test_ledger import POOL
from pondstack_rack.wait import wait_until
from tests.fixtures import lead

pytestmark = pytest.mark.functional


@pytest.fixture(scope="module")
def url(galera_session) -> Iterator[str]:
    """One database for all: a schema takes a second or two here. Each test leaves the pool free."""
    name = f"g_{uuid4().hex[:8]}"
    made = galera_session.database_url(name)
    database = Database.from_url(made, 30)
    migration.sync(database)
    database.dispose()
    yield made
    galera_session.start().drop_database(name)


@pytest.fixture
def on(galera, url) -> Iterator[Callable[..., Database]]:
    """Open the database with these nodes as hosts, in this order."""
    opened: list[Database] = []

    def open_on(*numbers, **arguments) -> Database:
        values = {"connect_seconds": 1.0, "answer_seconds": 10.0, "retry_seconds": 30, "mysql_wsrep_sync_wait": 1}
        hosts = [galera.hosts[number] for number in numbers]
        opened.append(Database.from_url(url, hosts=hosts, **{**values, **arguments}))
        return opened[-1]

    yield open_on
    for database in opened:
        database.dispose()


def test_of_two_takers_on_two_nodes_one_wins(on):
    stores = [SqlLeadership(on(0)), SqlLeadership(on(1))]
    for turn in range(25):
        expected = stores[0].read().epoch
        answers: dict[int, bool] = {}
        barrier = threading.Barrier(2)

        def take(number, expected=expected, answers=answers, barrier=barrier):
            barrier.wait(10)
            answers[number] = stores[number].take(expected, f"c{number}", 0.01)

        _run([threading.Thread(target=take, args=(number,)) for number in (0, 1)])
        assert sorted(answers.values()) == [False, True], f"turn {turn}"
        holder = "c0" if answers[0] else "c1"
        assert [(store.read().epoch, store.read().holder) for store in stores] == [(expected + 1, holder)] * 2
        assert wait_until(lambda: stores[0].read().remaining_seconds <= 0, 10, 0.005)


@pytest.mark.parametrize("fenced", [True, False])
def test_an_open_transaction_of_an_old_epoch_cannot_commit_after_a_take_on_another_node(on, fenced):
    """The control without the fence shows that nothing else keeps it from committing."""
    writer, taker = on(0), on(1)
    for turn in range(10):
        operation_id = str(uuid4())
        old = lead(writer, f"old{turn}")
        session = Session(writer.engine)
        if fenced:
            check_epoch(session, old)
        journal.record(session, operation_id, "test", "", old, {})
        lead(taker, f"new{turn}")
        if fenced:
            with pytest.raises(DBError) as caught:
                session.commit()
            assert retry.worth_retry(caught.value), caught.value
        else:
            session.commit()
        session.close()
        for database in (writer, taker):
            assert database.read(lambda session, op=operation_id: _recorded(session, op)) == (0 if fenced else 1)


def test_no_write_of_an_old_epoch_is_accepted_once_another_node_has_acknowledged_the_take(on):
    writer, taker, reader = on(0), on(1), on(2)
    for turn in range(4):
        ledger = fill(writer, lead(writer, f"old{turn}"))
        accepted: list[int] = []
        refused: list[NotLeader] = []

        def write(ledger=ledger, accepted=accepted, refused=refused):
            while not refused:
                try:
                    accepted.append(ledger.slices.quarantine(POOL, [], Cause.UNKNOWN, ""))
                except NotLeader as error:
                    refused.append(error)

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert wait_until(lambda accepted=accepted, turn=turn: len(accepted) > 10 + 7 * turn, 30, 0.001)
        lead(taker, f"new{turn}")
        # All that the old epoch will ever have written is there now.
        before = reader.read(_operations)
        for thread in threads:
            thread.join(30)
        assert refused
        assert reader.read(_operations) == before


def test_a_killed_node_loses_and_doubles_nothing(galera, on):
    database = on(0, 1, 2)
    with Stream(fill(database, lead(database))) as stream:
        stream.wait_for(60)
        galera.kill(0)
        stream.wait_for(60)
    print(f"writes went on {stream.longest_gap():.2f} s after the kill of the Galera node that took them")
    stream.verify(on(1))
    stream.verify(on(2))
    galera.restart(0)
    stream.verify(on(0))
    stream.give_back()


def test_a_frozen_node_does_not_hold_a_renewal_up(galera, on):
    database = on(0, 1, 2, retry_seconds=0, answer_seconds=1.0)
    store = SqlLeadership(database)
    epoch = lead(database)
    store.renew(epoch, 1.5)

    def renewed() -> bool:
        started = time.monotonic()
        try:
            store.renew(epoch, 1.5)
        except Unavailable:
            return False
        finally:
            # At the most: a ping without an answer, a connection to another node, and its two answers.
            assert time.monotonic() - started < 15
        return True

    for _ in range(3):
        galera.freeze(0)
        went_on = wait_until(renewed, 20, 0.05)
        majority = any(node.primary for node in galera.nodes[1:])
        galera.thaw(0)
        galera.wait_size(3)
        # When the machine itself stands still, all three suspect each other: without a majority there is nobody to ask.
        if went_on or majority:
            break
    assert went_on


def test_a_node_that_is_not_ready_is_left(galera, on):
    database = on(0, 1, 2)
    assert database.read(_node_name) == "galera0"
    galera.execute("SET GLOBAL wsrep_reject_queries = ALL")  # 1047 to all but this session's kind
    try:
        assert database.read(_node_name) == "galera1"
        database.dispose()
        assert database.read(_node_name) == "galera1"
    finally:
        galera.execute("SET GLOBAL wsrep_reject_queries = NONE")


def test_a_read_of_another_node_is_stale_unless_it_waits(galera, on):
    """wsrep_sync_wait = 1 (on() sets it) makes a read wait for what was committed before it on any node."""
    writer, fresh, hasty = on(0), on(1), on(1, mysql_wsrep_sync_wait=0)
    epoch = lead(writer)
    for database in (fresh, hasty):
        database.ping()  # connected before the node stands still
    answers: list[int] = []
    operation_id = str(uuid4())

    def read(database):
        return database.read(lambda session: _recorded(session, operation_id))

    waiting = threading.Thread(target=lambda: answers.append(read(fresh)))
    with galera.nodes[1].standing_still():
        writer.write(lambda session: journal.record(session, operation_id, "test", "", epoch, {}))
        assert read(hasty) == 0
        waiting.start()
        assert not wait_until(lambda: answers, 0.5, 0.05)
    waiting.join(30)
    assert answers == [1]


def _recorded(session, operation_id):
    counting = select(func.count()).select_from(OperationRow).where(OperationRow.operation_id == operation_id)
    return session.execute(counting).scalar_one()


def _operations(session):
    return session.execute(select(func.count()).select_from(OperationRow)).scalar_one()


def _node_name(session):
    return session.execute(text("SELECT @@wsrep_node_name")).scalar_one()


def _run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
