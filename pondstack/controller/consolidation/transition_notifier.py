"""Sends a message when a plan or a host's sleep begins, ends or fails, and when a host is asleep or lost."""

from sqlalchemy.orm import Session

from pondstack.controller.notifier import Notifier
from pondstack.db.store import transition_notices
from pondstack.telemetry.transition_events import TransitionEvent


class TransitionNotifier(Notifier[TransitionEvent]):
    """That of one leader."""

    @staticmethod
    def pending(session: Session) -> list[TransitionEvent]:
        """Return those of which nobody was told."""
        plans = [TransitionEvent(plan, kind) for plan, kind in transition_notices.pending_plans(session)]
        return plans + [TransitionEvent(item, kind) for item, kind in transition_notices.pending_sleeps(session)]

    @staticmethod
    def note(session: Session, event: TransitionEvent) -> None:
        """Remember that one was sent, and forget those of what is forgotten."""
        transition_notices.note(session, event.subject.uuid, event.kind)
        transition_notices.prune(session)
