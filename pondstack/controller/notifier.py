"""Sends messages of what the ledger's tables have and nobody was told of, whoever leads.

A leader that ends between sending a message and noting it leaves it to the next one, which sends it again with the same
event UUID. Nothing is lost.
"""

import abc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.domain.errors import NotLeader

Event = TypeVar("Event")


class Notifier(abc.ABC, Generic[Event]):
    """`send` returns when the message is safe. For one thread."""

    def __init__(self, database: Database, send: Callable[[Event], None], fence: Callable[[Session], object]) -> None:
        """`fence(session)` raises NotLeader in the transaction of a former leader."""
        self._database, self._send, self._fence = database, send, fence
        self._ended = False

    @staticmethod
    @abc.abstractmethod
    def pending(session: Session) -> Iterable[Event]:
        """Return what nobody was told of, in the order in which to tell it."""

    @staticmethod
    @abc.abstractmethod
    def note(session: Session, event: Event) -> None:
        """Remember that one was sent."""

    def run(self) -> None:
        """Send all there is; what fails stays for the next run. Raises NotLeader, Unavailable."""
        if self._ended:
            return
        try:
            for event in self._database.read(self.pending):
                self._database.read(self._fence)
                self._send(event)
                self._database.write(partial(self._noted, event=event))
        except NotLeader:
            self._ended = True
            raise

    def _noted(self, session: Session, event: Event) -> None:
        self._fence(session)
        self.note(session, event)
