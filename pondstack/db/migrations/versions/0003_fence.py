"""Hosts may be fenced: since when, and why."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the fence; no host of the former schema is fenced."""
    with op.batch_alter_table("hosts") as batch:
        batch.add_column(sa.Column("fenced_at", sa.Float(53), nullable=True))
        batch.add_column(sa.Column("fenced_reason", sa.String(255), nullable=False, server_default=""))
