"""The ledger's first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UUID = sa.String(36)
NAME = sa.String(255)
SECONDS = sa.Float(53)
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create all tables and the one leadership row."""
    _leadership()
    _pools_and_hosts()
    _allocations_and_slices()
    _journal_and_splits()


def _leadership() -> None:
    leadership = op.create_table(
        "leadership",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", NAME, nullable=False),
        sa.Column("renewed_at", SECONDS, nullable=False),
    )
    op.bulk_insert(leadership, [{"id": 1, "epoch": 0, "holder": "", "renewed_at": 0.0}])


def _pools_and_hosts() -> None:
    op.create_table(
        "pools",
        sa.Column("uuid", UUID, primary_key=True),
        sa.Column("name", NAME, nullable=False, unique=True),
        sa.Column("serial", NAME, nullable=False, unique=True),
        sa.Column("driver", sa.String(64), nullable=False),
        sa.Column("address", sa.JSON(), nullable=False),
        sa.Column("slice_mib", sa.Integer(), nullable=False),
        sa.Column("slices_total", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", SECONDS, nullable=False),
    )
    op.create_table(
        "hosts",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", NAME, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("provider_uuid", UUID, nullable=True),
        sa.Column("agent_version", sa.String(64), nullable=False),
        sa.Column("agent_epoch", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("attached", sa.JSON(), nullable=False),
        sa.Column("last_heartbeat", SECONDS, nullable=False),
        sa.Column("created_at", SECONDS, nullable=False),
    )
    op.create_table(
        "host_pools",
        sa.Column("host", NAME, sa.ForeignKey("hosts.name"), primary_key=True),
        sa.Column("pool_uuid", UUID, sa.ForeignKey("pools.uuid"), primary_key=True),
    )


def _allocations_and_slices() -> None:
    op.create_table(
        "allocations",
        sa.Column("uuid", UUID, primary_key=True),
        sa.Column("consumer_uuid", UUID, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("pool_uuid", UUID, sa.ForeignKey("pools.uuid"), nullable=False),
        sa.Column("extents", sa.JSON(), nullable=False),
        sa.Column("pool_mib", sa.Integer(), nullable=False),
        sa.Column("guest_mib", sa.Integer(), nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("user_id", NAME, nullable=False),
        sa.Column("operation_id", UUID, nullable=False, unique=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", SECONDS, nullable=False),
        sa.Column("unclaimed_since", SECONDS, nullable=True),
    )
    op.create_index("ix_allocations_consumer", "allocations", ["consumer_uuid"])
    op.create_index("ix_allocations_host", "allocations", ["host"])
    op.create_table(
        "slices",
        sa.Column("pool_uuid", UUID, sa.ForeignKey("pools.uuid"), primary_key=True),
        sa.Column("slice_index", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("host", NAME, nullable=True),
        sa.Column("allocation_uuid", UUID, nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("changed_at", SECONDS, nullable=False),
    )
    op.create_index("ix_slices_state", "slices", ["pool_uuid", "state"])
    op.create_index("ix_slices_allocation", "slices", ["allocation_uuid"])


def _journal_and_splits() -> None:
    op.create_table(
        "operations",
        sa.Column("sequence", SEQUENCE, primary_key=True),
        sa.Column("operation_id", UUID, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("effect", sa.JSON(), nullable=False),
        sa.Column("created_at", SECONDS, nullable=False),
    )
    op.create_index("uq_operations_id_kind", "operations", ["operation_id", "kind"], unique=True)
    op.create_table(
        "splits",
        sa.Column("instance_uuid", UUID, primary_key=True),
        sa.Column("flavor_key", sa.String(64), nullable=False),
        sa.Column("local_mib", sa.Integer(), nullable=False),
        sa.Column("pool_mib", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(32), nullable=False),
        sa.Column("confidence", SECONDS, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", SECONDS, nullable=False),
    )
