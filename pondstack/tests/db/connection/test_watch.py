"""A statement that is read again and again: over one connection, out of any transaction, and over another in need."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select, text

from pondstack.db.connection.engine import Database
from pondstack.db.connection.watch import KEEP_SECONDS, PAUSE_SECONDS, Watch
from tests.fixtures.servers import NETWORK_DATABASES

WHO = {"mysql": "CONNECTION_ID()", "postgresql": "pg_backend_pid()"}
END = {"mysql": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}


@pytest.fixture(params=NETWORK_DATABASES)
def database(request) -> Iterator[Database]:
    made = Database.from_url(request.getfixturevalue(f"{request.param}_migrated_url"), retry_seconds=10)
    yield made
    made.dispose()


class Watched:
    """A watch that tells over which connection it reads, on a clock that a test sets."""

    def __init__(self, database: Database) -> None:
        self.now = 1000.0
        self._who = select(text(WHO[database.engine.dialect.name]))
        self.watch = Watch(database, lambda: self.now)

    def who(self) -> int:
        return int(self.watch.one(self._who)[0])


@pytest.fixture
def watched(database) -> Iterator[Watched]:
    made = Watched(database)
    yield made
    made.watch.close()


def test_it_keeps_its_connection_and_gives_it_back(database, watched):
    first = watched.who()
    assert [watched.who() for _ in range(3)] == [first] * 3
    assert database.engine.pool.checkedout() == 1
    watched.watch.close()
    assert database.engine.pool.checkedout() == 0
    # What it had is as any other one: in a transaction until its end.
    assert database.read(lambda session: session.connection().get_isolation_level()) != "AUTOCOMMIT"
    watched.watch.close()


def test_it_sees_what_others_have_written_since(database, watched):
    rows = select(text("epoch FROM leadership"))
    before = watched.watch.one(rows)[0]
    database.write(lambda session: session.execute(text("UPDATE leadership SET epoch = epoch + 1")))
    assert watched.watch.one(rows)[0] == before + 1


@pytest.mark.parametrize("looks", [[PAUSE_SECONDS * 1.1], [PAUSE_SECONDS * 0.9] * int(1 + KEEP_SECONDS / 0.9)])
def test_after_a_pause_and_after_a_while_the_pool_looks_at_it(database, watched, looks):
    watched.who()
    taken: list[object] = []
    do_ping = database.engine.dialect.do_ping
    database.engine.dialect.do_ping = lambda connection: taken.append(connection) or do_ping(connection)
    for seconds in looks:
        watched.now += seconds
        watched.who()
    assert len(taken) == 1


def test_a_connection_that_its_server_ended_is_replaced(database, watched):
    first = watched.who()
    database.write(lambda session: session.execute(text(END[database.engine.dialect.name].format(first))))
    assert watched.who() != first
