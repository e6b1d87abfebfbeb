"""Tables of the rack: who leads, pools, hosts, slices, lent buffers, and the journal."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Float, ForeignKey, Index, Integer, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from pondstack.db.models.base import NAME, UUID, Base


class Leadership(Base):
    """One row: who may write, and until when nobody else may stand. `epoch` only grows.

    `expires_at` 0: the lease was handed over, and not even its own holder writes any more; `successor` stands first.
    """

    __tablename__ = "leadership"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    epoch: Mapped[int] = mapped_column(BigInteger, default=0)
    holder: Mapped[str] = mapped_column(NAME, default="")
    renewed_at: Mapped[float] = mapped_column(Float(53), default=0.0)
    expires_at: Mapped[float] = mapped_column(Float(53), default=0.0, server_default="0")
    successor: Mapped[str] = mapped_column(NAME, default="", server_default="")


class ControllerRow(Base):
    """One controller that takes part, as it last said of itself; `holder` is unique to one process and life.

    `heirs_holder`: the life of it that knows heirs of slices; that of a former release does not say so.
    """

    __tablename__ = "controllers"
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    holder: Mapped[str] = mapped_column(NAME)
    role: Mapped[str] = mapped_column(String(16))
    epoch: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[float] = mapped_column(Float(53))
    seen_at: Mapped[float] = mapped_column(Float(53))
    followed_sequence: Mapped[int] = mapped_column(BigInteger)
    reached_at: Mapped[float | None] = mapped_column(Float(53))
    heirs_holder: Mapped[str | None] = mapped_column(NAME)


class RevocationRow(Base):
    """Whose credentials, issued before a moment, are not believed any more; identity: ROLE/NAME."""

    __tablename__ = "revocations"
    identity: Mapped[str] = mapped_column(String(300), primary_key=True)
    revoked_at: Mapped[float] = mapped_column(Float(53))


class PoolRow(Base):
    """One pool device; `uuid` is also its Placement provider's. `free_buffer`: FreeBuffer of pondstack.domain."""

    __tablename__ = "pools"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    name: Mapped[str] = mapped_column(NAME, unique=True)
    serial: Mapped[str] = mapped_column(NAME, unique=True)
    driver: Mapped[str] = mapped_column(String(64))
    address: Mapped[dict[str, Any]] = mapped_column(JSON)
    slice_mib: Mapped[int] = mapped_column(Integer)
    slices_total: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(16))
    generation: Mapped[int] = mapped_column(Integer, default=0)
    created_at: Mapped[float] = mapped_column(Float(53))
    free_buffer: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class HostRow(Base):
    """One compute host with an agent. Its newest report: `sequence` and what follows to `hands_over`.

    `fenced_at` None: it is not fenced.
    """

    __tablename__ = "hosts"
    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    enabled: Mapped[bool] = mapped_column(Boolean, default=True)
    disabled_reason: Mapped[str] = mapped_column(NAME, default="")
    generation: Mapped[int] = mapped_column(Integer, default=0)
    provider_uuid: Mapped[str | None] = mapped_column(UUID)
    agent_version: Mapped[str] = mapped_column(String(64), default="")
    agent_epoch: Mapped[int] = mapped_column(BigInteger, default=0)
    sequence: Mapped[int] = mapped_column(BigInteger, default=0)
    attached: Mapped[list[Any]] = mapped_column(JSON)
    stuck: Mapped[dict[str, str] | None] = mapped_column(JSON)
    tiering: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    lending: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    borrowed: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    hands_over: Mapped[list[str] | None] = mapped_column(JSON)
    last_heartbeat: Mapped[float] = mapped_column(Float(53))
    created_at: Mapped[float] = mapped_column(Float(53))
    fenced_at: Mapped[float | None] = mapped_column(Float(53))
    fenced_reason: Mapped[str] = mapped_column(NAME, default="", server_default="")
    tiering_on: Mapped[bool | None] = mapped_column(Boolean)


class HostPoolRow(Base):
    """Which host reaches which pool, as its agent reported."""

    __tablename__ = "host_pools"
    host: Mapped[str] = mapped_column(ForeignKey("hosts.name"), primary_key=True)
    pool_uuid: Mapped[str] = mapped_column(ForeignKey("pools.uuid"), primary_key=True)


class AllocationRow(Base):
    """Pool memory of one consumer on one host; gone when its host confirmed the release.

    `heir`: the allocation of another host that its slices are being handed over to. `write_back`: of such an heir, it
    is to get them only after that host has written its CPU caches back; a former release leaves it NULL.
    """

    __tablename__ = "allocations"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    consumer_uuid: Mapped[str] = mapped_column(UUID)
    host: Mapped[str] = mapped_column(NAME)
    pool_uuid: Mapped[str] = mapped_column(ForeignKey("pools.uuid"))
    extents: Mapped[list[Any]] = mapped_column(JSON)
    pool_mib: Mapped[int] = mapped_column(Integer)
    guest_mib: Mapped[int] = mapped_column(Integer)
    project_id: Mapped[str] = mapped_column(NAME, default="")
    user_id: Mapped[str] = mapped_column(NAME, default="")
    operation_id: Mapped[str] = mapped_column(UUID, unique=True)
    generation: Mapped[int] = mapped_column(Integer, default=0)
    created_at: Mapped[float] = mapped_column(Float(53))
    unclaimed_since: Mapped[float | None] = mapped_column(Float(53))
    purpose: Mapped[str] = mapped_column(String(16), default="guest", server_default="guest")
    heir: Mapped[str | None] = mapped_column(UUID)
    write_back: Mapped[bool | None] = mapped_column(Boolean)
    __table_args__ = (
        Index("ix_allocations_consumer", "consumer_uuid"),
        Index("ix_allocations_host", "host"),
        Index("ix_allocations_heir", "heir"),
    )


class SliceRow(Base):
    """One slice. `host` and `allocation_uuid` are set in the owned states, and kept in quarantine.

    `cause`, `failure`: to be read by pondstack.domain.causes.stored only, while a former release may write rows.
    """

    __tablename__ = "slices"
    pool_uuid: Mapped[str] = mapped_column(ForeignKey("pools.uuid"), primary_key=True)
    index: Mapped[int] = mapped_column("slice_index", Integer, primary_key=True, autoincrement=False)
    state: Mapped[str] = mapped_column(String(16))
    host: Mapped[str | None] = mapped_column(NAME)
    allocation_uuid: Mapped[str | None] = mapped_column(UUID)
    epoch: Mapped[int] = mapped_column(BigInteger, default=0)
    reason: Mapped[str] = mapped_column(Text, default="")
    cause: Mapped[str | None] = mapped_column(String(32))
    failure: Mapped[int | None] = mapped_column(Integer)
    changed_at: Mapped[float] = mapped_column(Float(53))
    __table_args__ = (
        Index("ix_slices_state", "pool_uuid", "state"),
        Index("ix_slices_allocation", "allocation_uuid"),
    )


class LenderRow(Base):
    """A host that lends memory; see pondstack.domain.lending.Lender."""

    __tablename__ = "lenders"
    host: Mapped[str] = mapped_column(NAME, primary_key=True)
    incarnation: Mapped[str] = mapped_column(UUID)
    kind: Mapped[str] = mapped_column(String(16))
    buffer_mib: Mapped[int] = mapped_column(Integer)
    sequence: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[float] = mapped_column(Float(53))


class BufferRow(Base):
    """One buffer of a lender; `host`, `allocation_uuid` and `cause` as with a slice.

    Of a lost incarnation there is only what has owners.
    """

    __tablename__ = "buffers"
    incarnation: Mapped[str] = mapped_column(UUID, primary_key=True)
    index: Mapped[int] = mapped_column("buffer_index", Integer, primary_key=True, autoincrement=False)
    lender: Mapped[str] = mapped_column(ForeignKey("lenders.host"))
    offset_mib: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(String(16))
    host: Mapped[str | None] = mapped_column(NAME)
    allocation_uuid: Mapped[str | None] = mapped_column(UUID)
    generation: Mapped[int] = mapped_column(BigInteger, default=0)
    promised_to: Mapped[str | None] = mapped_column(NAME)
    leaving: Mapped[bool] = mapped_column(Boolean, default=False)
    epoch: Mapped[int] = mapped_column(BigInteger, default=0)
    reason: Mapped[str] = mapped_column(Text, default="")
    cause: Mapped[str | None] = mapped_column(String(32))
    admitted: Mapped[bool] = mapped_column(Boolean, server_default=false())
    escrowed: Mapped[bool] = mapped_column(Boolean, server_default=false())
    heir: Mapped[str | None] = mapped_column(UUID)
    shared: Mapped[bool] = mapped_column(Boolean, server_default=false())
    changed_at: Mapped[float] = mapped_column(Float(53))
    __table_args__ = (
        Index("ix_buffers_lender", "lender", "state"),
        Index("ix_buffers_state", "state"),
        Index("ix_buffers_allocation", "allocation_uuid"),
        Index("ix_buffers_host", "host"),
        Index("ix_buffers_heir", "heir"),
    )


class EscrowedKeyRow(Base):
    """One borrower's key of a buffer, sealed by the controllers; see pondstack.domain.escrow.

    Without a foreign key: a leader of the former release removes buffers, and knows nothing of these.
    """

    __tablename__ = "escrowed_keys"
    incarnation: Mapped[str] = mapped_column(UUID, primary_key=True)
    index: Mapped[int] = mapped_column("buffer_index", Integer, primary_key=True, autoincrement=False)
    borrower: Mapped[str] = mapped_column(NAME, primary_key=True)
    generation: Mapped[int] = mapped_column(BigInteger)
    sealing_key: Mapped[str] = mapped_column(String(64))
    sealed: Mapped[str] = mapped_column(Text)
    __table_args__ = (Index("ix_escrowed_keys_borrower", "borrower"),)


class HoldingRow(Base):
    """What a host is to hold of a pool for itself; see pondstack.domain.host_slices.Holding."""

    __tablename__ = "holdings"
    host: Mapped[str] = mapped_column(NAME, primary_key=True)
    pool_uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    purpose: Mapped[str] = mapped_column(String(16), primary_key=True)
    wanted: Mapped[int] = mapped_column(Integer)
    reason: Mapped[str] = mapped_column(Text, default="")


class LendRow(Base):
    """What an operator has a host lend, until that has ended; see pondstack.domain.admission.Lend."""

    __tablename__ = "lends"
    host: Mapped[str] = mapped_column(NAME, primary_key=True)
    operation_id: Mapped[str] = mapped_column(UUID)
    mib: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str] = mapped_column(String(16))
    stage: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text, default="")
    created_at: Mapped[float] = mapped_column(Float(53))


class RemoteAllocationRow(Base):
    """Buffers of one consumer on one borrowing host; gone when it has released the last of them.

    `acknowledged`: its borrower has had its keys; None: not, or not to a controller that writes it down.
    """

    __tablename__ = "remote_allocations"
    uuid: Mapped[str] = mapped_column(UUID, primary_key=True)
    consumer_uuid: Mapped[str] = mapped_column(UUID)
    host: Mapped[str] = mapped_column(NAME)
    guaranteed: Mapped[bool] = mapped_column(Boolean)
    project_id: Mapped[str] = mapped_column(NAME, default="")
    user_id: Mapped[str] = mapped_column(NAME, default="")
    operation_id: Mapped[str] = mapped_column(UUID, unique=True)
    created_at: Mapped[float] = mapped_column(Float(53))
    unclaimed_since: Mapped[float | None] = mapped_column(Float(53))
    acknowledged: Mapped[bool | None] = mapped_column(Boolean)
    __table_args__ = (
        Index("ix_remote_allocations_consumer", "consumer_uuid"),
        Index("ix_remote_allocations_host", "host"),
    )


class OperationRow(Base):
    """The journal: each operation id took effect once, with this answer. `sequence` orders them for a follower."""

    __tablename__ = "operations"
    sequence: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    operation_id: Mapped[str] = mapped_column(UUID)
    kind: Mapped[str] = mapped_column(String(32))
    fingerprint: Mapped[str] = mapped_column(String(64))
    epoch: Mapped[int] = mapped_column(BigInteger)
    effect: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[float] = mapped_column(Float(53))
    __table_args__ = (
        Index("uq_operations_id_kind", "operation_id", "kind", unique=True),
        Index("ix_operations_created", "created_at"),
    )
