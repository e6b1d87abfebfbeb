"""Mitigations, and since when a split is corrected."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a nullable column, and a table."""
    with op.batch_alter_table("splits") as splits:
        splits.add_column(sa.Column("corrected_at", sa.Float(53), nullable=True))
    op.create_table(
        "mitigations",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("trigger", sa.String(16), nullable=False),
        sa.Column("forced", sa.Boolean(), nullable=False),
        sa.Column("pool_mib", sa.Integer(), nullable=False),
        sa.Column("left_mib", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("work", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.Column("state_since", sa.Float(53), nullable=False),
        sa.Column("ended_at", sa.Float(53), nullable=True),
    )
    op.create_index("ix_mitigations_consumer", "mitigations", ["consumer_uuid", "created_at"])
    op.create_index("ix_mitigations_ended", "mitigations", ["ended_at"])
