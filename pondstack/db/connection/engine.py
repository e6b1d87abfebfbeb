"""Engine and transactions: each goes through Database.write or Database.read, which carry the retry rules."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from oslo_config import cfg
from oslo_db.sqlalchemy import engines
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.orm import Session

from pondstack.conf import database as options
from pondstack.db.connection import database_hosts, retry, timeouts

T = TypeVar("T")
WRITE = "pondstack_write"
IDLE_TRANSACTION_SECONDS = 1
"""The least that MariaDB takes; our transactions wait for nobody between two statements."""
GIVEN_UP = 2.0
"""After so many times its limit a statement has no client any more."""


class Database:
    """One database. Thread-safe: each transaction takes its own connection from the pool."""

    def __init__(self, engine: Engine, retry_seconds: float = 15.0) -> None:
        self.engine = engine
        self._retry_seconds = retry_seconds
        self._writer = engine.execution_options(**{WRITE: True})
        self._reader = engine
        if engine.dialect.name == "postgresql":
            self._reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @classmethod
    def from_url(
        cls,
        url: str,
        retry_seconds: float = 15.0,
        *,
        hosts: Sequence[str] = (),
        connect_seconds: float | None = None,
        answer_seconds: float | None = None,
        **arguments: Any,
    ) -> "Database":
        """Open a database; it need not answer yet. Raises ValueError for `hosts` that are none.

        `hosts` are the servers of one cluster, in place of the URL's host and port. Without limits, a server that is
        frozen is waited for as long as the driver does.
        """
        engine = engines.create_engine(url, max_retries=0, sqlite_fk=True, **arguments)
        dialect = engine.dialect.name
        chosen = database_hosts.parse(hosts, dialect)
        if dialect == "sqlite":
            _tune_sqlite(engine)
        else:
            database_hosts.Servers(engine, chosen, timeouts.Limits(connect_seconds, answer_seconds))
            _bound_idle_transactions(engine)
            if answer_seconds is not None:
                _bound_statements(engine, answer_seconds)
        return cls(engine, retry_seconds)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, **limits: float | None) -> "Database":
        """Open the database of the [database] section.

        `retry_seconds`, `connect_seconds` and `answer_seconds` come in place of the section's, for work that has less
        time, or more. Raises cfg.Error.
        """
        options.register_opts(conf)
        group = conf.database
        if not group.connection:
            raise cfg.RequiredOptError("connection", cfg.OptGroup(options.GROUP))
        arguments = {
            "retry_seconds": group.transaction_retry_seconds,
            "hosts": group.hosts,
            "connect_seconds": group.connect_seconds,
            "answer_seconds": group.answer_seconds,
            "connection_recycle_time": group.connection_recycle_time,
            "max_pool_size": group.max_pool_size,
            "max_overflow": group.max_overflow,
            "pool_timeout": group.pool_timeout,
            "mysql_sql_mode": group.mysql_sql_mode,
            "mysql_wsrep_sync_wait": group.mysql_wsrep_sync_wait,
            "connection_debug": group.connection_debug,
            "connection_parameters": group.connection_parameters,
        }
        try:
            return cls.from_url(group.connection, **{**arguments, **limits})
        except ValueError as error:
            raise cfg.ConfigFileValueError(f"[database] hosts: {error}") from error

    def write(self, work: Callable[[Session], T], turn: AbstractContextManager[Any] | None = None) -> T:
        """Run `work` in one transaction and commit it; it may run more than once. Raises Unavailable.

        `turn` is held from before the transaction begins until it has ended, and not between two tries.
        """

        def attempt() -> T:
            with turn or nullcontext():
                return self._once(self._writer, work)

        return retry.run(attempt, self._retry_seconds)

    def read(self, work: Callable[[Session], T]) -> T:
        """Run `work` in one read-only, consistent transaction. Raises Unavailable."""
        return self.retry(lambda: self._look(self._reader, work))

    def retry(self, work: Callable[[], T]) -> T:
        """Run `work`, which asks this database by itself, by the rules of all transactions. Raises Unavailable."""
        return retry.run(work, self._retry_seconds)

    def ping(self) -> None:
        """Raise Unavailable when the database does not answer at once."""
        retry.run(lambda: self._look(self._reader, lambda session: session.execute(text("SELECT 1"))), 0.0)

    def dispose(self) -> None:
        """Close all idle connections."""
        self.engine.dispose()

    @staticmethod
    def _once(engine: Engine, work: Callable[[Session], T]) -> T:
        with Session(engine, expire_on_commit=False) as session, session.begin():
            return work(session)

    @staticmethod
    def _look(engine: Engine, work: Callable[[Session], T]) -> T:
        """As _once(), without a commit: there is nothing to keep, and closing ends the transaction."""
        with Session(engine, expire_on_commit=False) as session:
            return work(session)


_IDLE_LIMIT = {
    # What each reads as a comment is for the other: the first name is for MariaDB, the second for MySQL.
    "mysql": ("SET SESSION /*M! idle_transaction_timeout *//*!80000 wait_timeout */ = {}", 1),
    "postgresql": ("SET idle_in_transaction_session_timeout = {}", 1000),
}
"""How a session is told its limit, and its units in a second."""


def _bound_idle_transactions(engine: Engine) -> None:
    """Have the server roll a transaction back whose process does not go on for IDLE_TRANSACTION_SECONDS.

    A leader that is paused within a transaction holds the leadership row, for which its successor would wait. MySQL has
    a limit for idle connections only; those without a transaction are made anew when they are needed.
    """
    statement, units = _IDLE_LIMIT[engine.dialect.name]

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement.format(IDLE_TRANSACTION_SECONDS * units))
        connection.commit()


_STATEMENT_LIMIT = {
    # MySQL has it for SELECT only.
    "mysql": "SET SESSION /*M! max_statement_time = {seconds:g} *//*!80000 max_execution_time = {milliseconds:.0f} */",
    "postgresql": "SET statement_timeout = {milliseconds:.0f}",
}


def _bound_statements(engine: Engine, answer_seconds: float) -> None:
    """Have the server end a statement that nobody waits for any more: each try would leave one behind that goes on.

    Later than its client gives up, so that what becomes of the transaction is known in one way only.
    """
    seconds = GIVEN_UP * answer_seconds
    statement = _STATEMENT_LIMIT[engine.dialect.name].format(seconds=seconds, milliseconds=seconds * 1000)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)
        connection.commit()


def allow_idle_transactions(connection: Connection) -> None:
    """Lift that limit for one connection, which its pool does not get back: a change of the schema takes its time."""
    if connection.dialect.name in _IDLE_LIMIT:
        connection.exec_driver_sql(_IDLE_LIMIT[connection.dialect.name][0].format("DEFAULT"))
        connection.commit()
        connection.detach()


def _tune_sqlite(engine: Engine) -> None:
    """Readers do not block the writer (WAL); a writer takes its lock at the start and never has to upgrade."""

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA busy_timeout = 30000")
        connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin", insert=True)
    def _on_begin(connection: Any) -> None:
        if connection.get_execution_options().get(WRITE) and "in_transaction" not in connection.info:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            connection.info["in_transaction"] = True
