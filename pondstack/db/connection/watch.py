"""One statement that is read again and again, as a stand-by looks at the lease, over a connection that is kept.

Each statement is a transaction by itself (AUTOCOMMIT): a look is one question and its answer. By the pool, it is a
ping, the statement and a rollback, and three times the processor time.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row, Select

from pondstack.db.connection.engine import Database

KEEP_SECONDS = 60.0
"""For so long a connection is kept before it goes through the pool again, which pings it and knows when it is old."""
PAUSE_SECONDS = 1.0
"""After such a pause between two looks it does, too: the server may have ended it meanwhile."""


class Watch:
    """Reads one row. Thread-safe; close() it before the database is disposed of."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._taken = self._looked = 0.0

    def one(self, statement: Select[Any]) -> Row[Any]:
        """Return the one row of a statement; raises Unavailable."""
        if self._database.engine.dialect.name == "sqlite":
            # There is nobody to ask, and in memory all share one connection.
            return self._database.read(lambda session: session.execute(statement).one())
        return self._database.retry(lambda: self._ask(statement))

    def close(self) -> None:
        """Give the connection back; the next look takes another one. Idempotent."""
        with self._lock:
            self._drop()

    def _ask(self, statement: Select[Any]) -> Row[Any]:
        with self._lock:
            now = self._clock()
            if self._is_due(now):
                self._drop()
            try:
                if self._connection is None:
                    self._connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    self._taken = now
                row = self._connection.execute(statement).one()
            except BaseException:
                self._drop()
                raise
            self._looked = now
            return row

    def _is_due(self, now: float) -> bool:
        return now - self._taken > KEEP_SECONDS or now - self._looked > PAUSE_SECONDS

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
