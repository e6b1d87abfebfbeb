"""Which database errors are worth another try. The one place that knows error numbers.

A deadlock or a lost serialisation rolled everything back. After a lost connection the outcome is unknown. Both are
answered by running the whole transaction again: it starts by looking its operation id up in the journal.
"""

from collections.abc import Callable
from typing import TypeVar

import tenacity
from oslo_db import exception as db_exc
from sqlalchemy import exc as sa_exc

from pondstack.domain.errors import Unavailable

T = TypeVar("T")

MYSQL_AGAIN = frozenset(
    {1047, 1053, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1205, 1213, 1290, 1927, 2002, 2003, 2006, 2013, 2014, 2055}
)
"""Not ready (1047), shutting down (1053, 1927), deadlock (1213, 1205), read only (1290), connection lost (2xxx)."""

POSTGRESQL_AGAIN = ("08", "40001", "40P01", "25006", "53300", "55P03", "57P")
"""Connection lost, serialisation, deadlock, read only, too many clients, lock not available, shutting down."""


class CompareAndSetLost(Exception):
    """Somebody changed the rows between our reading and writing; the transaction starts again."""


def worth_retry(error: BaseException) -> bool:
    """Return whether running the whole transaction again may help."""
    if isinstance(error, CompareAndSetLost | db_exc.DBDeadlock | db_exc.DBConnectionError | db_exc.RetryRequest):
        return True
    inner = error.inner_exception if isinstance(error, db_exc.DBError) else error
    if isinstance(inner, sa_exc.DBAPIError):
        if inner.connection_invalidated:
            return True
        inner = inner.orig
    state = getattr(inner, "pgcode", None)
    if state is not None:
        return str(state).startswith(POSTGRESQL_AGAIN)
    arguments = getattr(inner, "args", ())
    if arguments and isinstance(arguments[0], int):
        return arguments[0] in MYSQL_AGAIN or arguments[0] == 0
    # Without any code the driver lost the server in mid-sentence, or SQLite is held by another writer.
    return type(inner).__name__ in {"OperationalError", "InterfaceError"} and "no such" not in str(inner)


def run(work: Callable[[], T], retry_seconds: float) -> T:
    """Run a transaction until it succeeds; raises Unavailable after `retry_seconds` of retryable errors."""
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(worth_retry),
        wait=tenacity.wait_random_exponential(multiplier=0.02, max=1.0),
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
