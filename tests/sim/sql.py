"""The real SQL ledger in a history: SQLite in memory, whose clock is the history's.

The schema is made once in a process, and each history begins with a copy of it. One connection serves all transactions,
none of which gives its turn away. Triggers tell which tables a transaction wrote; the watch reads those, past the ORM.
"""

import json
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from oslo_db.sqlalchemy import exc_filters
from sqlalchemy import Engine, NullPool, create_engine, event, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from pondstack.db.connection import migration, retry
from pondstack.db.connection.engine import Database
from pondstack.db.models import AllocationRow, PoolRow, SliceRow
from pondstack.db.read.rack import read_rack
from pondstack.db.store import buffers, lends
from pondstack.domain.causes import stored
from pondstack.domain.errors import Unavailable
from pondstack.domain.model import Allocation, Extent, Pool, PoolState, Slice
from pondstack.domain.purpose import Purpose
from pondstack.domain.states import SliceState
from pondstack.domain.transitions import LedgerView

from .invariants import Watch

if TYPE_CHECKING:
    from .lending.world import LendingWorld

T = TypeVar("T")
UNIX_EPOCH_DAYS = 2440587.5
"""The julian day on which the seconds of Unix begin; pondstack.db.connection.clock counts from it."""

SLICES = ("slices", "allocations")
BUFFERS = ("buffers", "lenders")


class WatchedDatabase(Database):
    """A database in this process that shows each commit to the watch, and to that of lent memory."""

    reading = staticmethod(read_rack)
    lends = lends

    def __init__(self, clock: Callable[[], float], watch: Watch, lent: "LendingWorld | None" = None) -> None:
        super().__init__(_engine(), retry_seconds=0.0)
        self._clock, self._watch, self._lent = clock, watch, lent
        self._written: set[str] = set()
        self._connection = self.engine.connect()
        self._raw: Any = self._connection.connection.dbapi_connection
        self._raw.deserialize(_schema())
        self._raw.execute("PRAGMA foreign_keys = ON")
        # SQLite keeps what it calls, out of sight of the garbage collector: nothing there may keep the history alive.
        me = weakref.proxy(self)
        self._raw.create_function("julianday", 1, lambda _now: me._clock() / 86400.0 + UNIX_EPOCH_DAYS)
        self._raw.create_function("pondstack_written", 1, self._written.add)
        for table in SLICES + (BUFFERS if lent is not None else ()):
            self._note_writes(table)

    def _note_writes(self, table: str) -> None:
        for verb in ("INSERT", "UPDATE", "DELETE"):
            self._raw.execute(
                f"CREATE TEMP TRIGGER {table}_{verb} AFTER {verb} ON main.{table} "
                f"BEGIN SELECT pondstack_written('{table}'); END"
            )

    @property
    def leading(self) -> int:
        """The epoch that the row says."""
        return int(self._raw.execute("SELECT epoch FROM leadership").fetchone()[0])

    def write(self, work: Callable[[Session], T], turn: AbstractContextManager[Any] | None = None) -> T:
        """Run a transaction and show what became of it; raises Unavailable where production would try again."""
        with turn or nullcontext():
            self._written.clear()
            answer = self._transact(work)
            if not self._written.isdisjoint(SLICES):
                self._watch.ledger_changed(_read_ledger(self._raw))
            if self._lent is not None and not self._written.isdisjoint(BUFFERS):
                self._lent.watch.ledger_changed(self._transact(buffers.everything))
        return answer

    def read(self, work: Callable[[Session], T]) -> T:
        """Run a transaction; raises Unavailable where production would try again."""
        return self._transact(work)

    def _transact(self, work: Callable[[Session], T]) -> T:
        try:
            with Session(self._connection, expire_on_commit=False) as session, session.begin():
                return work(session)
        except Exception as error:
            if retry.worth_retry(error):
                raise Unavailable("the database does not answer") from error
            raise


@cache
def _engine() -> Engine:
    """Return this process's engine, which keeps the compiled statements from one history to the next.

    The journal stays on, in memory: without one, SQLite leaves half of what it rolls back.
    """

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None)

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    exc_filters.register_engine(engine)
    event.listen(engine, "begin", lambda connection: connection.connection.dbapi_connection.execute("BEGIN"))
    return engine


@cache
def _schema() -> bytes:
    """Return a database as the migrations make it."""
    database = Database.from_url("sqlite://", retry_seconds=0.0)
    migration.sync(database)
    with database.engine.connect() as connection:
        raw: Any = connection.connection.dbapi_connection
        content = bytes(raw.serialize())
    database.dispose()
    return content


@cache
def _statement(*columns: InstrumentedAttribute[Any]) -> str:
    """Return the text of a query of one table, ordered by its first two columns."""
    return str(select(*columns).order_by(*columns[:2]).compile(_engine()))


def _read_ledger(raw: Any) -> LedgerView:
    """Read what the watch judges, past the ORM: after each commit that changed it, on the connection itself."""
    pools = {row[0]: Pool(*row[:4], PoolState(row[4])) for row in raw.execute(_statement(*_POOL))}
    slices = tuple(_slice(row) for row in raw.execute(_statement(*_SLICE)))
    allocations = {
        row[0]: Allocation(
            *row[:4], tuple(Extent(**extent) for extent in json.loads(row[4])), purpose=Purpose(row[5]), heir=row[6]
        )
        for row in raw.execute(_statement(*_ALLOCATION))
    }
    return LedgerView(pools, slices, allocations)


def _slice(row: Any) -> Slice:
    state = SliceState(row[2])
    return Slice(row[0], row[1], state, *row[3:7], *stored(state, row[7], row[8], row[6]))


_POOL = PoolRow.uuid, PoolRow.name, PoolRow.slices_total, PoolRow.slice_mib, PoolRow.state
_SLICE = (
    SliceRow.pool_uuid,
    SliceRow.index,
    SliceRow.state,
    SliceRow.host,
    SliceRow.allocation_uuid,
    SliceRow.epoch,
    SliceRow.reason,
    SliceRow.cause,
    SliceRow.failure,
)
_ALLOCATION = (
    AllocationRow.uuid,
    AllocationRow.consumer_uuid,
    AllocationRow.host,
    AllocationRow.pool_uuid,
    AllocationRow.extents,
    AllocationRow.purpose,
    AllocationRow.heir,
)
