"""Table of the notifications of plans and of hosts' sleeps that were sent."""

from sqlalchemy import Float, String
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import UUID, Base


class TransitionNoticeRow(Base):
    """A notification of a plan or of a host's sleep that was sent: start, asleep, lost, end or error."""

    __tablename__ = "transition_notices"
    subject_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    sent_at: Mapped[float] = mapped_column(Float(53))
