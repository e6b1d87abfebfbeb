"""Lent memory is admitted: it has left what Nova may place on its host before anybody borrows it."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what hosts are to lend, and which buffers are admitted: none yet, so that Placement is asked about each.

    A leader of the former release adds buffers that are not, and lends them all the same.
    """
    with op.batch_alter_table("buffers") as batch:
        batch.add_column(sa.Column("admitted", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "lends",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("operation_id", sa.String(36), nullable=False),
        sa.Column("mib", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
    )
