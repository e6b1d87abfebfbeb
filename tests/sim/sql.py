"""The real SQL ledger in a history: SQLite in memory, whose clock is the history's."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import event, select
from sqlalchemy.orm import Session

from pondstack.db.connection import migration
from pondstack.db.connection.engine import Database
from pondstack.db.models import Leadership
from pondstack.db.read.rack import read_rack
from pondstack.db.store.leadership import ROW

from .invariants import Watch

T = TypeVar("T")
UNIX_EPOCH_DAYS = 2440587.5
"""The julian day on which the seconds of Unix begin; pondstack.db.connection.clock counts from it."""


class WatchedDatabase(Database):
    """A database in this process that shows each commit to the watch."""

    reading = staticmethod(read_rack)

    def __init__(self, clock: Callable[[], float], watch: Watch) -> None:
        made = Database.from_url("sqlite://", retry_seconds=0.0)
        self.__dict__.update(made.__dict__)
        self._watch = watch

        @event.listens_for(self.engine, "connect")
        def _on_connect(connection: Any, _record: Any) -> None:
            connection.create_function("julianday", 1, lambda _now: clock() / 86400.0 + UNIX_EPOCH_DAYS)

        self.engine.dispose()
        migration.sync(self)
        self._seen = super().read(read_rack).ledger()

    @property
    def leading(self) -> int:
        """The epoch that the row says."""
        return int(super().read(lambda session: session.execute(_EPOCH).scalar_one()))

    def write(self, work: Callable[[Session], T], *named: Any) -> T:
        """Run a transaction and show what became of it."""
        answer = super().write(work, *named)
        view = super().read(read_rack)
        if view.ledger() != self._seen:
            self._seen = view.ledger()
            self._watch.ledger_changed(view)
        return answer


_EPOCH = select(Leadership.epoch).where(Leadership.id == ROW)
