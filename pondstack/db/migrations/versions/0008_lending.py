"""Hosts lend memory: lenders, their buffers, and who borrows them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_UUID, _NAME = sa.String(36), sa.String(255)


def upgrade() -> None:
    """Add three tables, and what hosts report; a controller of the former release does not look at them."""
    with op.batch_alter_table("hosts") as batch:
        batch.add_column(sa.Column("lending", sa.JSON(), nullable=True))
        batch.add_column(sa.Column("borrowed", sa.JSON(), nullable=True))
    op.create_table(
        "lenders",
        sa.Column("host", _NAME, primary_key=True),
        sa.Column("incarnation", _UUID, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("buffer_mib", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
    )
    op.create_table(
        "buffers",
        sa.Column("incarnation", _UUID, primary_key=True),
        sa.Column("buffer_index", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("lender", _NAME, sa.ForeignKey("lenders.host"), nullable=False),
        sa.Column("offset_mib", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("host", _NAME),
        sa.Column("allocation_uuid", _UUID),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("promised_to", _NAME),
        sa.Column("leaving", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Float(53), nullable=False),
    )
    op.create_index("ix_buffers_lender", "buffers", ["lender", "state"])
    op.create_index("ix_buffers_state", "buffers", ["state"])
    op.create_index("ix_buffers_allocation", "buffers", ["allocation_uuid"])
    op.create_index("ix_buffers_host", "buffers", ["host"])
    op.create_table(
        "remote_allocations",
        sa.Column("uuid", _UUID, primary_key=True),
        sa.Column("consumer_uuid", _UUID, nullable=False),
        sa.Column("host", _NAME, nullable=False),
        sa.Column("guaranteed", sa.Boolean(), nullable=False),
        sa.Column("project_id", _NAME, nullable=False),
        sa.Column("user_id", _NAME, nullable=False),
        sa.Column("operation_id", _UUID, nullable=False, unique=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
    )
    op.create_index("ix_remote_allocations_consumer", "remote_allocations", ["consumer_uuid"])
    op.create_index("ix_remote_allocations_host", "remote_allocations", ["host"])
