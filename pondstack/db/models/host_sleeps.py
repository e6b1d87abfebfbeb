"""Table of hosts' sleeps."""

from typing import Any

from sqlalchemy import JSON, Float, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import NAME, UUID, Base


class HostSleepRow(Base):
    """One sleep of a host, kept for a while after its end; see pondstack.domain.host_sleep. `ended_at` None: open.

    `work`: what its next leader has to know of it, as pondstack.domain.host_sleep.Work.
    """

    __tablename__ = "host_sleeps"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    host: Mapped[str] = mapped_column(NAME)
    driver: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text)
    lent_mib: Mapped[int] = mapped_column(Integer)
    work: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[float] = mapped_column(Float(53))
    updated_at: Mapped[float] = mapped_column(Float(53))
    state_since: Mapped[float] = mapped_column(Float(53))
    ended_at: Mapped[float | None] = mapped_column(Float(53))
    __table_args__ = (
        Index("ix_host_sleeps_host", "host", "created_at"),
        Index("ix_host_sleeps_ended", "ended_at"),
    )
