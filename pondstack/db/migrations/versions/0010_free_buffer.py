"""Pools have a free buffer of a size that is measured; the journal is read by time."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add size and index; a leader of the former release keeps its option's fixed buffer and leaves the size alone."""
    with op.batch_alter_table("pools") as batch:
        batch.add_column(sa.Column("free_buffer", sa.JSON(), nullable=True))
    op.create_index("ix_operations_created", "operations", ["created_at"])
