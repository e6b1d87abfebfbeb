"""Sends a message when a mitigation begins, ends or fails: all that was not sent yet, whoever leads.

A leader that ends between sending a message and noting it leaves it to the next one, which sends it again with the same
event UUID. Nothing is lost.
"""

from collections.abc import Callable
from functools import partial

from oslo_log import log
from sqlalchemy.orm import Session

from pondstack.db.connection.engine import Database
from pondstack.db.store import mitigation_notices
from pondstack.domain.errors import NotLeader
from pondstack.telemetry.mitigation_events import MitigationEvent

LOG = log.getLogger(__name__)


class MitigationNotifier:
    """`send` returns when the message is safe. For one thread."""

    def __init__(
        self, database: Database, send: Callable[[MitigationEvent], None], fence: Callable[[Session], object]
    ) -> None:
        """`fence(session)` raises NotLeader in the transaction of a former leader."""
        self._database = database
        self._send = send
        self._fence = fence
        self._ended = False

    def run(self) -> None:
        """Send all there is; what fails stays for the next run. Raises NotLeader, Unavailable."""
        if self._ended:
            return
        try:
            for record, kind in self._database.read(mitigation_notices.pending):
                event = MitigationEvent(record, kind)
                self._database.read(self._fence)
                self._send(event)
                self._database.write(partial(self._note, event=event))
        except NotLeader:
            self._ended = True
            raise

    def _note(self, session: Session, event: MitigationEvent) -> None:
        self._fence(session)
        mitigation_notices.note(session, event.record.uuid, event.kind)
