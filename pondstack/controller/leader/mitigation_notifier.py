"""Sends a message when a mitigation begins, ends or fails."""

from sqlalchemy.orm import Session

from pondstack.controller.notifier import Notifier
from pondstack.db.store import mitigation_notices
from pondstack.telemetry.mitigation_events import MitigationEvent


class MitigationNotifier(Notifier[MitigationEvent]):
    """That of one leader."""

    @staticmethod
    def pending(session: Session) -> list[MitigationEvent]:
        """Return those of which nobody was told."""
        return [MitigationEvent(record, kind) for record, kind in mitigation_notices.pending(session)]

    @staticmethod
    def note(session: Session, event: MitigationEvent) -> None:
        """Remember that one was sent."""
        mitigation_notices.note(session, event.record.uuid, event.kind)
