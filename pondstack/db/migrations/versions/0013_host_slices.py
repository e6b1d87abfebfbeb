"""Hosts hold slices for themselves: how many they are to hold, and what an allocation is for."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both; what a leader of the former release assigns is for guests."""
    with op.batch_alter_table("allocations") as batch:
        batch.add_column(sa.Column("purpose", sa.String(16), nullable=False, server_default="guest"))
    op.create_table(
        "holdings",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("pool_uuid", sa.String(36), primary_key=True),
        sa.Column("purpose", sa.String(16), primary_key=True),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
    )
