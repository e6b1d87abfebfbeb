"""Tables of the QoS monitor: its decisions, what was predicted again, what tenants say of performance."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Float, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import NAME, UUID, Base


class QosDecisionRow(Base):
    """What the monitor decided of an over-predicted VM; a new row where verdict or action are others than before.

    `untouched_mib`: of all its memory, at that moment: a label that outlives its pool memory.
    """

    __tablename__ = "qos_decisions"
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    consumer_uuid: Mapped[str] = mapped_column(UUID)
    allocation_uuid: Mapped[str] = mapped_column(UUID)
    project_id: Mapped[str] = mapped_column(NAME)
    host: Mapped[str] = mapped_column(NAME)
    verdict: Mapped[str] = mapped_column(String(16))
    action: Mapped[str] = mapped_column(String(16))
    mode: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text)
    expected_percent: Mapped[float | None] = mapped_column(Float(53))
    untouched_mib: Mapped[float | None] = mapped_column(Float(53))
    evidence: Mapped[dict[str, Any]] = mapped_column(JSON)
    decided_at: Mapped[float] = mapped_column(Float(53))
    __table_args__ = (
        Index("ix_qos_decisions_consumer", "consumer_uuid", "id"),
        Index("ix_qos_decisions_age", "decided_at"),
    )


class RepredictionRow(Base):
    """What a long-lived VM was predicted to leave untouched, by its own past; `wanted_mib`: pool memory by that."""

    __tablename__ = "qos_repredictions"
    consumer_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    project_id: Mapped[str] = mapped_column(NAME)
    memory_mib: Mapped[int] = mapped_column(Integer)
    pool_mib: Mapped[int] = mapped_column(Integer)
    wanted_mib: Mapped[int] = mapped_column(Integer)
    untouched_mib: Mapped[float] = mapped_column(Float(53))
    age_seconds: Mapped[int] = mapped_column(BigInteger)
    source: Mapped[str] = mapped_column(String(16))
    predicted_at: Mapped[float] = mapped_column(Float(53))


class PerformanceRow(Base):
    """A tenant's figure of an instance's performance: the newest, and the mean of all; `better`: higher or lower."""

    __tablename__ = "qos_performance"
    consumer_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    metric: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(NAME)
    higher_is_better: Mapped[bool] = mapped_column(Boolean)
    readings: Mapped[int] = mapped_column(BigInteger)
    mean: Mapped[float] = mapped_column(Float(53))
    newest: Mapped[float] = mapped_column(Float(53))
    updated_at: Mapped[float] = mapped_column(Float(53))
    __table_args__ = (Index("ix_qos_performance_age", "updated_at"),)


class MitigationNoticeRow(Base):
    """A notification of a mitigation that was sent: start, end or error."""

    __tablename__ = "mitigation_notices"
    mitigation_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    sent_at: Mapped[float] = mapped_column(Float(53))
