"""Sends a message when a plan or a host's sleep begins, ends or fails: all that was not sent yet, whoever leads.

As MitigationNotifier: a message that was sent and not noted is sent again, with the same event UUID.
"""

from collections.abc import Callable
from functools import partial

from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store import transition_notices
from pondstack.domain.errors import NotLeader
from pondstack.telemetry.transition_events import TransitionEvent


class TransitionNotifier:
    """`send` returns when the message is safe. For one thread."""

    def __init__(
        self, database: Database, send: Callable[[TransitionEvent], None], fence: Callable[[Session], object]
    ) -> None:
        """`fence(session)` raises NotLeader in the transaction of a former leader."""
        self._database, self._send, self._fence = database, send, fence
        self._ended = False

    def run(self) -> None:
        """Send all there is; what fails stays for the next run. Raises NotLeader, Unavailable."""
        if self._ended:
            return
        try:
            for event in self._database.read(_pending):
                self._database.read(self._fence)
                self._send(event)
                self._database.write(partial(self._note, event=event))
        except NotLeader:
            self._ended = True
            raise

    def _note(self, session: Session, event: TransitionEvent) -> None:
        self._fence(session)
        transition_notices.note(session, event.subject.uuid, event.kind)
        transition_notices.prune(session)


def _pending(session: Session) -> list[TransitionEvent]:
    plans = [TransitionEvent(plan, kind) for plan, kind in transition_notices.pending_plans(session)]
    return plans + [TransitionEvent(item, kind) for item, kind in transition_notices.pending_sleeps(session)]
