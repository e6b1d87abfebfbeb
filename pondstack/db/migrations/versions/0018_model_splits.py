"""Which model decided a split, and from what; what a model that serves is held to; counters of instances."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns that have a default, and a table."""
    with op.batch_alter_table("splits") as splits:
        splits.add_column(sa.Column("model_version", sa.String(64), nullable=False, server_default=""))
        splits.add_column(sa.Column("inputs", sa.JSON(), nullable=True))
    op.create_index("ix_splits_model", "splits", ["model_version", "created_at"])
    with op.batch_alter_table("models") as models:
        models.add_column(sa.Column("serving", sa.JSON(), nullable=True))
    op.create_table(
        "lifetime_counters",
        sa.Column("instance_uuid", sa.String(36), primary_key=True),
        sa.Column("counters", sa.JSON(), nullable=False),
        sa.Column("observed_until", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
    )
    op.create_index("ix_lifetime_counters_age", "lifetime_counters", ["observed_until"])
