"""Table of mitigations."""

from typing import Any

from sqlalchemy import JSON, Boolean, Float, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import NAME, UUID, Base


class MitigationRow(Base):
    """One mitigation, kept for a while after its end; see pondstack.domain.mitigation. `ended_at` None: it is open.

    `work`: what its next leader has to know of it, as pondstack.domain.mitigation.Work.
    """

    __tablename__ = "mitigations"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    consumer_uuid: Mapped[str] = mapped_column(UUID)
    host: Mapped[str] = mapped_column(NAME)
    project_id: Mapped[str] = mapped_column(NAME)
    method: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    trigger: Mapped[str] = mapped_column(String(16))
    forced: Mapped[bool] = mapped_column(Boolean)
    pool_mib: Mapped[int] = mapped_column(Integer)
    left_mib: Mapped[int] = mapped_column(Integer)
    reason: Mapped[str] = mapped_column(Text)
    evidence: Mapped[dict[str, Any]] = mapped_column(JSON)
    work: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[float] = mapped_column(Float(53))
    updated_at: Mapped[float] = mapped_column(Float(53))
    state_since: Mapped[float] = mapped_column(Float(53))
    ended_at: Mapped[float | None] = mapped_column(Float(53))
    __table_args__ = (
        Index("ix_mitigations_consumer", "consumer_uuid", "created_at"),
        Index("ix_mitigations_ended", "ended_at"),
    )
