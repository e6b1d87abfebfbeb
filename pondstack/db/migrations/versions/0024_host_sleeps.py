"""Hosts' sleeps."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "host_sleeps",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("driver", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("lent_mib", sa.Integer(), nullable=False),
        sa.Column("work", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.Column("state_since", sa.Float(53), nullable=False),
        sa.Column("ended_at", sa.Float(53), nullable=True),
    )
    op.create_index("ix_host_sleeps_host", "host_sleeps", ["host", "created_at"])
    op.create_index("ix_host_sleeps_ended", "host_sleeps", ["ended_at"])
