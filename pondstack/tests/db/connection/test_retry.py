"""The retry rules: each code's remedy, and how a transaction is tried again until it works or the time is over."""

import sqlite3

import psycopg2
import pymysql
import pytest
from oslo_db import exception as db_exc
from sqlalchemy import exc as sa_exc
from sqlalchemy import text

from pondstack.db.connection import retry
from pondstack.db.connection.engine import Database
from pondstack.db.connection.retry import Remedy
from pondstack.domain.errors import Unavailable
from pondstack.tests.ledger.test_ledger import POOL, request

AGAIN, ELSEWHERE, UNKNOWN = Remedy.AGAIN, Remedy.ELSEWHERE, Remedy.UNKNOWN

MYSQL = {
    AGAIN: (1020, 1205, 1213),
    ELSEWHERE: (1021, 1030, 1040, 1047, 1114, 1129, 1290, 1836, 2002, 2003),
    UNKNOWN: (0, 1053, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1927, 2006, 2013, 2014, 2055, 4031),
    None: (1062, 1064, 1146, 1292, 1406, 1451),
}
POSTGRESQL = {
    AGAIN: ("40001", "40P01", "55P03"),
    ELSEWHERE: ("25006", "53100", "53200", "53300", "57P03", "58030"),
    UNKNOWN: ("08000", "08003", "08006", "25P03", "40003", "57P01", "57P02", "57P05"),
    None: ("22001", "23505", "25P02", "42P01", "57014"),
}
SQLITE = {
    AGAIN: (5, 5 | 2 << 8, 6, 10, 10 | 4 << 8, 13, 14),  # with extended codes: BUSY_SNAPSHOT, IOERR_FSYNC
    None: (1, 11, 19),
}


def wrapped(cause, invalidated=False):
    """An error of a driver as SQLAlchemy and oslo.db hand it on."""
    inner = sa_exc.OperationalError("UPDATE", {}, cause)
    inner.connection_invalidated = invalidated
    return db_exc.DBError(inner)


def mysql(code, invalidated=False):
    return wrapped(pymysql.err.OperationalError(code, "text"), invalidated)


class PostgreSQLError(psycopg2.OperationalError):
    def __init__(self, code):
        super().__init__("text")
        self._code = code

    @property
    def pgcode(self):
        return self._code


def postgresql(code):
    return wrapped(PostgreSQLError(code))


def sqlite(code):
    cause = sqlite3.OperationalError("text")
    cause.sqlite_errorcode = code
    return wrapped(cause)


@pytest.mark.parametrize(
    ("make", "code", "expected"),
    [
        (make, code, expected)
        for make, codes in ((mysql, MYSQL), (postgresql, POSTGRESQL), (sqlite, SQLITE))
        for expected, some in codes.items()
        for code in some
    ],
)
def test_remedy_of_a_code(make, code, expected):
    error = make(code)
    assert retry.remedy(error) is expected
    # As a listener of SQLAlchemy sees it: the driver's own error.
    assert retry.remedy(error.inner_exception.orig) is expected


@pytest.mark.parametrize(
    ("table", "tested"), [(retry.MYSQL, MYSQL), (retry.POSTGRESQL, POSTGRESQL), (retry.SQLITE, SQLITE)]
)
def test_no_code_is_listed_without_a_test(table, tested):
    known = {code for expected, codes in tested.items() if expected for code in codes}
    classes = {str(code)[:2] for code in known}
    assert [code for code in table if code not in known and code not in classes] == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (retry.CompareAndSetLost("x"), AGAIN),
        (db_exc.DBDeadlock(), AGAIN),
        (db_exc.RetryRequest(ValueError("x")), AGAIN),
        (sa_exc.TimeoutError("no connection of the pool is free"), AGAIN),
        (db_exc.DBConnectionError(), UNKNOWN),
        (mysql(9999, invalidated=True), UNKNOWN),
        (wrapped(psycopg2.OperationalError("server closed the connection unexpectedly")), UNKNOWN),
        (wrapped(psycopg2.InterfaceError("connection already closed")), UNKNOWN),
        (psycopg2.OperationalError("could not connect"), UNKNOWN),
        (db_exc.DBConnectionError(mysql(1047).inner_exception), ELSEWHERE),
        (db_exc.DBDuplicateEntry(), None),
        (ValueError("a bug"), None),
        (Unavailable("said already"), None),
    ],
    ids=repr,
)
def test_remedy_of_an_error(error, expected):
    assert retry.remedy(error) is expected


def test_tried_again_until_it_works():
    tries = []

    def work():
        tries.append(1)
        if len(tries) < 3:
            raise mysql(1213)
        return "done"

    assert retry.run(work, 10) == "done"


@pytest.mark.parametrize("error", [ValueError("a bug"), mysql(1146), postgresql("42P01")], ids=repr)
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
    grant = ledger.slices.assign("op-1", wanted)
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
