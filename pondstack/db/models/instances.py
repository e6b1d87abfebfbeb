"""Tables of instances: telemetry, history, splits; models and what is set per project."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Float, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.manifest import ManifestColumn
from pondstack.db.models.base import BLOB, NAME, UUID, Base


class TelemetryRow(Base):
    """Readings of a guest's metric on one host. `period_seconds` 0: as an agent sent them; else of a whole period.

    `taken_at`: of a period its begin. `node` -1: the guest as a whole. `readings` 0: no value, for `reason`.
    """

    __tablename__ = "telemetry"
    consumer_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    period_seconds: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    taken_at: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    metric: Mapped[str] = mapped_column(String(32), primary_key=True)
    node: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(NAME, primary_key=True)
    readings: Mapped[int] = mapped_column(Integer)
    minimum: Mapped[float | None] = mapped_column(Float(53))
    mean: Mapped[float | None] = mapped_column(Float(53))
    maximum: Mapped[float | None] = mapped_column(Float(53))
    reason: Mapped[str] = mapped_column(NAME)
    source: Mapped[str] = mapped_column(String(16), default="measured", server_default="measured")
    __table_args__ = (Index("ix_telemetry_age", "period_seconds", "taken_at"),)


class InstanceRow(Base):
    """What is known of an instance, kept after its end; times in seconds since the epoch, by Nova's clock.

    `changed_at`: of the newest word that is in here. `sized_at`: since when it has this flavor.
    """

    __tablename__ = "instances"
    instance_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    project_id: Mapped[str] = mapped_column(NAME)
    flavor_name: Mapped[str] = mapped_column(NAME)
    memory_mib: Mapped[int] = mapped_column(Integer)
    vcpus: Mapped[int] = mapped_column(Integer)
    image_uuid: Mapped[str] = mapped_column(UUID, default="")
    image_os: Mapped[str] = mapped_column(NAME, default="")
    zone: Mapped[str] = mapped_column(NAME, default="")
    name_key: Mapped[str] = mapped_column(String(64), default="")
    created_at: Mapped[int] = mapped_column(BigInteger)
    sized_at: Mapped[int] = mapped_column(BigInteger)
    changed_at: Mapped[int] = mapped_column(BigInteger)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)
    __table_args__ = (
        Index("ix_instances_project", "project_id", "created_at"),
        Index("ix_instances_deleted", "deleted_at"),
        Index("ix_instances_image", "image_uuid"),
    )


class LabelRow(Base):
    """The least untouched memory of an instance, by node (-1: as a whole), and for how long it was observed.

    Kept up as samples come, so that it outlives them; of an instance that is known later, or never, too.
    """

    __tablename__ = "lifetime_labels"
    instance_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    node: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    untouched_mib: Mapped[float] = mapped_column(Float(53))
    first_at: Mapped[int] = mapped_column(BigInteger)
    observed_until: Mapped[int] = mapped_column(BigInteger)
    observed_seconds: Mapped[int] = mapped_column(BigInteger)
    source: Mapped[str] = mapped_column(String(16))
    __table_args__ = (Index("ix_lifetime_labels_age", "observed_until"),)


class CounterRow(Base):
    """What an instance's counters came to, summed up with its periods: by metric, the sum and how many readings."""

    __tablename__ = "lifetime_counters"
    instance_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    counters: Mapped[dict[str, list[float]]] = mapped_column(JSON)
    observed_until: Mapped[int] = mapped_column(BigInteger)
    source: Mapped[str] = mapped_column(String(16))
    __table_args__ = (Index("ix_lifetime_counters_age", "observed_until"),)


class HistoryRow(Base):
    """One row: the salt of hashed names, and what of Nova's past is known.

    `complete_since`: every instance that was there at this moment or later is in `instances`, None: nothing was read
    yet; `read_until`: Nova's changes until then were read.
    """

    __tablename__ = "history"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    salt: Mapped[str] = mapped_column(String(64))
    complete_since: Mapped[int | None] = mapped_column(BigInteger)
    read_until: Mapped[int | None] = mapped_column(BigInteger)


class SplitRow(Base):
    """The split decided for an instance, kept for its moves; `flavor_key` changes on resize.

    `corrected_at`: since when its pool memory is taken away for good by a mitigation, None: it was not.
    """

    __tablename__ = "splits"
    instance_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    flavor_key: Mapped[str] = mapped_column(String(64))
    local_mib: Mapped[int] = mapped_column(Integer)
    pool_mib: Mapped[int] = mapped_column(Integer)
    source: Mapped[str] = mapped_column(String(32))
    confidence: Mapped[float] = mapped_column(Float(53))
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float] = mapped_column(Float(53))
    model_version: Mapped[str] = mapped_column(String(64), default="", server_default="")
    inputs: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    corrected_at: Mapped[float | None] = mapped_column(Float(53))
    __table_args__ = (Index("ix_splits_model", "model_version", "created_at"),)


class ModelRow(Base):
    """A prediction model in ONNX; one of a kind runs at most. `serving`: points of Eq. 1 and budget, as noted last."""

    __tablename__ = "models"
    version: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    manifest: Mapped[dict[str, Any]] = mapped_column(ManifestColumn)
    blob: Mapped[bytes] = mapped_column(BLOB)
    sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[float] = mapped_column(Float(53))
    promoted_at: Mapped[float | None] = mapped_column(Float(53))
    serving: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    __table_args__ = (Index("ix_models_kind", "kind", "state"),)


class ProjectSettingsRow(Base):
    """What an operator set for a project; None: that is not set. A project with nothing set has no row."""

    __tablename__ = "project_settings"
    project_id: Mapped[str] = mapped_column(String(255), primary_key=True)
    default_policy: Mapped[str | None] = mapped_column(String(8))
    max_pool_percent: Mapped[int | None] = mapped_column(Integer)
    updated_at: Mapped[float] = mapped_column(Float(53))
