"""Which database errors are worth another try, and why. The one place that knows error numbers.

Whatever the remedy, the whole transaction runs again from its start, which looks its operation id up in the journal:
what an earlier try had committed is found there and not done twice. The remedies differ in what is known and in what
becomes of the connection. doc/source/admin/databases.md explains them.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

import tenacity
from oslo_db import exception as db_exc
from sqlalchemy import exc as sa_exc

from pondstack.domain.errors import Unavailable
from pondstack.ledger.store import CompareAndSetLost

T = TypeVar("T")
LONGEST_PAUSE_SECONDS = 0.5


class Remedy(StrEnum):
    """What is known after an error, and what to do."""

    AGAIN = "again"
    """The transaction was rolled back, this server is fine: run it again after a short pause."""

    ELSEWHERE = "elsewhere"
    """This server cannot do it: nothing happened. Leave it, run the transaction on another one."""

    UNKNOWN = "unknown"
    """The connection ended before the answer: committed or not. Run it again over a new connection."""


MYSQL: Mapping[int, tuple[Remedy, str]] = {
    1020: (Remedy.AGAIN, "record has changed since last read"),
    1205: (Remedy.AGAIN, "lock wait timeout"),
    1213: (Remedy.AGAIN, "deadlock; on Galera a lost certification or a brute force abort"),
    1021: (Remedy.ELSEWHERE, "disk full"),
    1030: (Remedy.ELSEWHERE, "storage engine failed"),
    1040: (Remedy.ELSEWHERE, "too many connections"),
    1047: (Remedy.ELSEWHERE, "Galera node is not ready, or not in the primary component"),
    1114: (Remedy.ELSEWHERE, "tablespace is full"),
    1129: (Remedy.ELSEWHERE, "host is blocked"),
    1290: (Remedy.ELSEWHERE, "server is read only"),
    1836: (Remedy.ELSEWHERE, "server is read only"),
    2002: (Remedy.ELSEWHERE, "cannot connect"),
    2003: (Remedy.ELSEWHERE, "cannot connect"),
    0: (Remedy.UNKNOWN, "connection is closed (PyMySQL)"),
    1053: (Remedy.UNKNOWN, "server is shutting down"),
    1152: (Remedy.UNKNOWN, "connection aborted"),
    1158: (Remedy.UNKNOWN, "network read failed"),
    1159: (Remedy.UNKNOWN, "network read timeout"),
    1160: (Remedy.UNKNOWN, "network write failed"),
    1161: (Remedy.UNKNOWN, "network write timeout"),
    1180: (Remedy.UNKNOWN, "error during commit"),
    1184: (Remedy.UNKNOWN, "connection aborted"),
    1927: (Remedy.UNKNOWN, "connection was killed"),
    2006: (Remedy.UNKNOWN, "server has gone away"),
    2013: (Remedy.UNKNOWN, "lost connection during query, or no answer in time"),
    2014: (Remedy.UNKNOWN, "packets out of order"),
    2055: (Remedy.UNKNOWN, "lost connection"),
    4031: (Remedy.UNKNOWN, "idle for too long (MySQL)"),
}
"""By error number of MariaDB, of MySQL and of PyMySQL."""

POSTGRESQL: Mapping[str, tuple[Remedy, str]] = {
    "40001": (Remedy.AGAIN, "serialization failure"),
    "40P01": (Remedy.AGAIN, "deadlock"),
    "55P03": (Remedy.AGAIN, "lock not available"),
    "25006": (Remedy.ELSEWHERE, "read only: a standby, or a primary that was fenced"),
    "53": (Remedy.ELSEWHERE, "disk full, out of memory, too many connections"),
    "57P03": (Remedy.ELSEWHERE, "starting up or shutting down"),
    "58030": (Remedy.ELSEWHERE, "I/O error"),
    "08": (Remedy.UNKNOWN, "connection lost"),
    "40003": (Remedy.UNKNOWN, "statement completion unknown"),
    "25P03": (Remedy.UNKNOWN, "idle in a transaction for too long"),
    "57P01": (Remedy.UNKNOWN, "administrator ended the connection"),
    "57P02": (Remedy.UNKNOWN, "server crashed"),
    "57P05": (Remedy.UNKNOWN, "idle session timeout"),
}
"""By SQLSTATE or by its first two characters, the class."""

SQLITE: Mapping[int, tuple[Remedy, str]] = {
    5: (Remedy.AGAIN, "SQLITE_BUSY: another process writes"),
    6: (Remedy.AGAIN, "SQLITE_LOCKED: another connection of this process writes"),
    10: (Remedy.AGAIN, "SQLITE_IOERR"),
    13: (Remedy.AGAIN, "SQLITE_FULL"),
    14: (Remedy.AGAIN, "SQLITE_CANTOPEN"),
}
"""By primary result code (the low byte of the extended one). There is no other server to go to."""


def remedy(error: BaseException) -> Remedy | None:
    """Return what to do after an error of a transaction, None when trying again cannot help."""
    if isinstance(error, CompareAndSetLost | db_exc.DBDeadlock | db_exc.RetryRequest | sa_exc.TimeoutError):
        return Remedy.AGAIN
    cause: BaseException | None = error.inner_exception if isinstance(error, db_exc.DBError) else error
    lost = isinstance(error, db_exc.DBConnectionError)
    if isinstance(cause, sa_exc.DBAPIError):
        lost = lost or cause.connection_invalidated
        cause = cause.orig
    try:
        listed = _by_code(cause)
    except LookupError:
        # A driver without any code lost the server in mid-sentence, or never reached it.
        lost = lost or type(cause).__name__ in {"OperationalError", "InterfaceError"}
        listed = None
    return listed or (Remedy.UNKNOWN if lost else None)


def _by_code(cause: BaseException | None) -> Remedy | None:
    """Return what the tables say of a driver's error; raises LookupError when it carries no code."""
    found: tuple[Remedy, str] | None
    if (state := getattr(cause, "pgcode", None)) is not None:
        found = POSTGRESQL.get(state) or POSTGRESQL.get(str(state)[:2])
    elif (number := getattr(cause, "sqlite_errorcode", None)) is not None:
        found = SQLITE.get(number & 0xFF)
    elif isinstance(number := next(iter(getattr(cause, "args", ())), None), int):
        found = MYSQL.get(number)
    else:
        raise LookupError("no code")
    return found[0] if found else None


def worth_retry(error: BaseException) -> bool:
    """Return whether running the whole transaction again may help."""
    return remedy(error) is not None


def run(work: Callable[[], T], retry_seconds: float) -> T:
    """Run a transaction until it succeeds; raises Unavailable after `retry_seconds` of retryable errors."""
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(worth_retry),
        wait=tenacity.wait_random_exponential(multiplier=0.02, max=LONGEST_PAUSE_SECONDS),
        stop=tenacity.stop_after_delay(retry_seconds),
        reraise=True,
    )
    try:
        return retrying(work)
    except Exception as error:
        if worth_retry(error):
            raise Unavailable(f"the database does not answer ({_first_line(error)}); look at its log") from error
        raise


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
