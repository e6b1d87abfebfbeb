"""Tables of the planner's jobs, and of their reports, which are too large to be read with each list."""

from typing import Any

from sqlalchemy import JSON, Float, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import BLOB, NAME, UUID, Base


class PlannerJobRow(Base):
    """One job, kept for a while after its end; see pondstack.domain.planner_job."""

    __tablename__ = "planner_jobs"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    asked: Mapped[dict[str, Any]] = mapped_column(JSON)
    user_id: Mapped[str] = mapped_column(NAME)
    project_id: Mapped[str] = mapped_column(NAME)
    done: Mapped[int] = mapped_column(Integer)
    total: Mapped[int] = mapped_column(Integer)
    tries: Mapped[int] = mapped_column(Integer)
    controller: Mapped[str] = mapped_column(NAME)
    reason: Mapped[str] = mapped_column(Text)
    summary: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(Float(53))
    begun_at: Mapped[float | None] = mapped_column(Float(53))
    ended_at: Mapped[float | None] = mapped_column(Float(53))
    __table_args__ = (Index("ix_planner_jobs_state", "state"), Index("ix_planner_jobs_created", "created_at"))


class PlannerReportRow(Base):
    """The report of a job that ended: its answers as JSON and its page, both compressed by zlib."""

    __tablename__ = "planner_reports"
    job_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    answers: Mapped[bytes] = mapped_column(BLOB)
    page: Mapped[bytes] = mapped_column(BLOB)
