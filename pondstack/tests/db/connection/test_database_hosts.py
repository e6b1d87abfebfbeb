"""Choosing among the servers of a database, and not waiting for ever for one of them."""

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator

import pytest
from oslo_config import cfg
from oslo_db.exception import DBError
from sqlalchemy import event, make_url, text
from sqlalchemy.orm import Session

from pondstack.conf import database as options
from pondstack.db.connection import database_hosts, retry
from pondstack.db.connection.engine import Database, allow_idle_transactions
from pondstack.domain.errors import Unavailable
from pondstack_rack.servers import LOOPBACK, free_port
from pondstack_rack.wait import wait_until
from tests.fixtures.servers import NETWORK_DATABASES

SLEEP = {"mysql": "SELECT SLEEP(20)", "postgresql": "SELECT pg_sleep(20)"}


@pytest.fixture(params=NETWORK_DATABASES)
def url(request) -> str:
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as made:
        made.setblocking(False)
        yield made


@pytest.fixture
def silent(listener) -> str:
    """A frozen server: it takes connections and says nothing."""
    return f"{LOOPBACK}:{listener.getsockname()[1]}"


def calls_of(listener) -> int:
    """Count who has connected since the last time."""
    for number in itertools.count():
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return number


@pytest.fixture
def live(url) -> str:
    parsed = make_url(url)
    return f"{parsed.host}:{parsed.port}"


def one(database):
    return database.read(lambda session: session.execute(text("SELECT 1")).scalar_one())


def test_addresses():
    parsed = database_hosts.parse(["db1", " db2:3307", "[::1]:3308"], "mysql")
    assert [str(item) for item in parsed] == ["db1:3306", "db2:3307", "[::1]:3308"]
    assert [str(item) for item in database_hosts.parse(["db1"], "postgresql")] == ["db1:5432"]
    assert database_hosts.parse([], "sqlite") == []
    for wrong in (["db1:x"], [":3306"], ["db1:70000"]):
        with pytest.raises(ValueError, match="is not host"):
            database_hosts.parse(wrong, "mysql")


def test_sqlite_has_no_hosts(tmp_path):
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("connection", f"sqlite:///{tmp_path}/x.db", "database")
    conf.set_override("hosts", ["db1"], "database")
    with pytest.raises(cfg.Error, match="leave hosts empty"):
        Database.from_conf(conf)


@pytest.mark.functional
def test_a_dead_server_and_a_silent_one_are_passed_over(url, live, listener, silent):
    dead = f"{LOOPBACK}:{free_port()}"
    limits = {"connect_seconds": 5.0, "answer_seconds": 5.0}
    database = Database.from_url(url, 0, hosts=[dead, silent, live], **limits)
    started = time.monotonic()
    assert one(database) == 1
    assert time.monotonic() - started < 30
    assert calls_of(listener) == 1
    # From now on the live one comes first: new connections do not wait for the others.
    database.dispose()
    assert one(database) == 1
    assert calls_of(listener) == 0
    database.dispose()


@pytest.mark.functional
def test_no_server_at_all_is_unavailable_and_says_why(url, silent):
    dead = f"{LOOPBACK}:{free_port()}"
    database = Database.from_url(url, 0, hosts=[dead, silent], connect_seconds=0.3, answer_seconds=0.3)
    with pytest.raises(Unavailable, match=f"no server of .*{dead}: .*efused.*{silent}: "):
        one(database)


@pytest.mark.functional
def test_a_silent_server_is_not_waited_for(url, silent):
    database = Database.from_url(
        make_url(url).set(port=int(silent.rpartition(":")[2])).render_as_string(hide_password=False),
        0,
        connect_seconds=0.5,
        answer_seconds=0.5,
    )
    started = time.monotonic()
    with pytest.raises(Unavailable):
        database.ping()
    assert time.monotonic() - started < 8


@pytest.mark.functional
def test_an_answer_that_does_not_come_is_an_unknown_outcome(url):
    database = Database.from_url(url, 0, connect_seconds=2, answer_seconds=0.5)
    statement = text(SLEEP[database.engine.dialect.name])
    used = []
    event.listen(database.engine, "checkout", lambda connection, *_: used.append(connection))
    started = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        database.write(lambda session: session.execute(statement))
    assert time.monotonic() - started < 15
    assert retry.remedy(caught.value.__cause__) is retry.Remedy.UNKNOWN
    answers: list[int] = []

    def answers_again():
        with contextlib.suppress(Unavailable):  # it has half a second for each
            answers.append(one(database))
        return bool(answers)

    assert wait_until(answers_again, 60)
    assert answers == [1]
    assert all(connection is not used[0] for connection in used[1:]), "what was given up is not used again"
    database.dispose()


@pytest.mark.functional
def test_a_statement_that_was_given_up_ends_in_the_server_too(url):
    impatient, patient = Database.from_url(url, 0, answer_seconds=1.0), Database.from_url(url, 0)
    dialect = impatient.engine.dialect.name
    listed = {
        "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE info = '{}'",
        "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE query = '{}' AND state = 'active'",
    }
    endless = SLEEP[dialect].replace("20", "600")
    under_way = text(listed[dialect].format(endless))

    def running():
        return patient.read(lambda session: session.execute(under_way).scalar_one())

    with pytest.raises(Unavailable):
        impatient.read(lambda session: session.execute(text(endless)))
    assert running()
    assert wait_until(lambda: not running(), 60)
    for database in (impatient, patient):
        database.dispose()


@pytest.mark.functional
def test_other_connections_of_the_process_wait_as_ever(postgresql, postgresql_url):
    """psycopg2's wait function is the whole process's."""
    Database.from_url(postgresql_url, 0, answer_seconds=0.1).dispose()
    assert postgresql.execute("SELECT 1 FROM pg_sleep(0.5)") == [(1,)]


@pytest.mark.functional
def test_a_transaction_that_stands_still_is_ended_by_the_server(url):
    """Its rows are free for others then; a change of the schema has no such limit."""
    database = Database.from_url(url, 0)
    idle = {
        "mysql": "SELECT /*M! @@idle_transaction_timeout *//*!80000 @@wait_timeout */",
        "postgresql": "SHOW idle_in_transaction_session_timeout",
    }
    statement = text(idle[database.engine.dialect.name])
    assert database.read(lambda session: session.execute(statement).scalar_one()) in (1, "1s")
    with database.engine.connect() as connection:
        allow_idle_transactions(connection)
        assert connection.execute(statement).scalar_one() in (0, 28800, "0")
    assert database.read(lambda session: session.execute(statement).scalar_one()) in (1, "1s")
    own, listed = {
        "mysql": ("SELECT CONNECTION_ID()", "SELECT COUNT(*) FROM information_schema.processlist WHERE id = :own"),
        "postgresql": ("SELECT pg_backend_pid()", "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = :own"),
    }[database.engine.dialect.name]
    database.write(lambda session: session.execute(text("CREATE TABLE t (x INTEGER)")))
    with Session(database.engine) as session:
        session.execute(text("INSERT INTO t VALUES (1)"))
        number = session.execute(text(own)).scalar_one()

        def alive(other):
            return other.execute(text(listed), {"own": number}).scalar_one()

        assert wait_until(lambda: not database.read(alive), 60)
        with pytest.raises(DBError) as caught:
            session.execute(text("SELECT 1"))
        assert retry.remedy(caught.value) is retry.Remedy.UNKNOWN
    database.dispose()
