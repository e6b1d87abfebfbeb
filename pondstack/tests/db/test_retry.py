"""The retry rules: what is tried again, what is not, and when it ends."""

import psycopg2.errors
import pymysql
import pytest
from oslo_db import exception as db_exc
from sqlalchemy import exc as sa_exc
from sqlalchemy import text

from pondstack.db import retry
from pondstack.db.engine import Database
from pondstack.domain.errors import Unavailable
from pondstack.tests.db.test_ledger import POOL, request


def mysql(code, invalidated=False):
    inner = sa_exc.OperationalError("UPDATE", {}, pymysql.err.OperationalError(code, "text"))
    inner.connection_invalidated = invalidated
    return db_exc.DBError(inner)


class PostgreSQLError(psycopg2.OperationalError):
    def __init__(self, code):
        super().__init__("text")
        self._code = code

    @property
    def pgcode(self):
        return self._code


def postgresql(code):
    return db_exc.DBError(sa_exc.OperationalError("UPDATE", {}, PostgreSQLError(code)))


@pytest.mark.parametrize(
    "error",
    [
        db_exc.DBDeadlock(),
        db_exc.DBConnectionError(),
        retry.CompareAndSetLost("x"),
        *(mysql(code) for code in (1047, 1180, 1205, 1213, 1927, 2003, 2013)),
        mysql(9999, invalidated=True),
        *(postgresql(code) for code in ("40001", "40P01", "57P01", "25006", "08006")),
        db_exc.DBError(sa_exc.OperationalError("UPDATE", {}, psycopg2.OperationalError("server closed"))),
    ],
    ids=repr,
)
def test_worth_another_try(error):
    tries = []

    def work():
        tries.append(1)
        if len(tries) < 3:
            raise error
        return "done"

    assert retry.run(work, 10) == "done"


@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), mysql(1146), postgresql("42P01"), db_exc.DBDuplicateEntry(), Unavailable("said already")],
    ids=repr,
)
def test_not_worth_another_try(error):
    tries = []

    def work():
        tries.append(1)
        raise error

    with pytest.raises(type(error)):
        retry.run(work, 10)
    assert len(tries) == 1


def test_a_database_that_stays_away_is_unavailable():
    def work():
        raise db_exc.DBConnectionError("refused")

    with pytest.raises(Unavailable, match="the database does not answer"):
        retry.run(work, 0.0)


@pytest.mark.functional
def test_a_commit_whose_answer_was_lost_is_not_done_twice(ledger, reader, monkeypatch):
    """The connection dies after the commit: the second try finds the operation in the journal."""
    real = Database._once
    lost = []

    def once(engine, work):
        answer = real(engine, work)
        if not lost:
            lost.append(answer)
            raise db_exc.DBConnectionError("lost after the commit")
        return answer

    monkeypatch.setattr(Database, "_once", staticmethod(once))
    wanted = request(2)
    grant = ledger.assign("op-1", wanted)
    assert grant == lost[0]
    assert reader.pool(POOL).slices["assigning"] == 2


@pytest.mark.functional
def test_a_restart_of_mariadb_is_sat_out(mariadb, mariadb_url):
    database = Database.from_url(mariadb_url, retry_seconds=30)
    database.write(lambda session: session.execute(text("SELECT 1")))
    mariadb.restart()
    assert database.write(lambda session: session.execute(text("SELECT 1")).scalar()) == 1
    mariadb.stop()
    with pytest.raises(Unavailable):
        Database.from_url(mariadb_url, retry_seconds=0.2).ping()
    mariadb.start()
    database.dispose()
