"""Buffers that are handed over to another host, by whose allocation, and of which it has keys, too."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns that the former release does not fill."""
    with op.batch_alter_table("buffers") as buffers:
        buffers.add_column(sa.Column("heir", sa.String(36)))
        buffers.add_column(sa.Column("shared", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_buffers_heir", "buffers", ["heir"])
