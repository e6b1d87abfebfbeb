"""Tables of consolidation: plans, their actions, its freeze, its limits, and what hosts measured of themselves."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Float, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import NAME, UUID, Base


class PlanRow(Base):
    """One plan, kept for a while after its end; see pondstack.domain.plan. `ended_at` None: it is open."""

    __tablename__ = "plans"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    trigger: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    afterwards: Mapped[str] = mapped_column(String(16))
    at_once: Mapped[bool] = mapped_column(Boolean)
    target: Mapped[str] = mapped_column(NAME)
    ending: Mapped[str] = mapped_column(String(16))
    effect: Mapped[dict[str, Any]] = mapped_column(JSON)
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    inputs: Mapped[dict[str, Any]] = mapped_column(JSON)
    left_out: Mapped[dict[str, str]] = mapped_column(JSON)
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(Float(53))
    updated_at: Mapped[float] = mapped_column(Float(53))
    decided_at: Mapped[float | None] = mapped_column(Float(53))
    ended_at: Mapped[float | None] = mapped_column(Float(53))
    __table_args__ = (Index("ix_plans_state", "state"), Index("ix_plans_created", "created_at"))


class PlanActionRow(Base):
    """One action of a plan, by its number. `begun_at` None: it was not begun yet; else when last."""

    __tablename__ = "plan_actions"
    plan_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    chain: Mapped[str] = mapped_column(NAME)
    host: Mapped[str] = mapped_column(NAME)
    server_uuid: Mapped[str] = mapped_column(String(36))
    destination: Mapped[str] = mapped_column(NAME)
    mib: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text)
    tries: Mapped[int] = mapped_column(Integer)
    begun_at: Mapped[float | None] = mapped_column(Float(53))
    __table_args__ = (Index("ix_plan_actions_begun", "kind", "begun_at"),)


class FreezeRow(Base):
    """One row while consolidation is frozen; none: it is not."""

    __tablename__ = "consolidation_freeze"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    reason: Mapped[str] = mapped_column(Text)
    since: Mapped[float] = mapped_column(Float(53))


class ConsolidationLimitsRow(Base):
    """One row while something is set; see pondstack.domain.consolidation_limits. NULL: the option holds."""

    __tablename__ = "consolidation_limits"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    reserve_percent: Mapped[float | None] = mapped_column(Float(53))
    least_awake: Mapped[int | None] = mapped_column(Integer)


class HostTelemetryRow(Base):
    """One reading of a host's own metric, kept for [telemetry] keep_host_samples_seconds."""

    __tablename__ = "host_telemetry"
    host: Mapped[str] = mapped_column(NAME, primary_key=True)
    metric: Mapped[str] = mapped_column(String(32), primary_key=True)
    taken_at: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    value: Mapped[float] = mapped_column(Float(53))
    source: Mapped[str] = mapped_column(String(16))
    __table_args__ = (Index("ix_host_telemetry_age", "taken_at"),)
