"""Keys of lent buffers that controllers keep for borrowers of lenders that sleep, and which buffers have such keys."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table, and a column that the former release does not fill."""
    with op.batch_alter_table("buffers") as buffers:
        buffers.add_column(sa.Column("escrowed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "escrowed_keys",
        sa.Column("incarnation", sa.String(36), primary_key=True),
        sa.Column("buffer_index", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("borrower", sa.String(255), primary_key=True),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("sealing_key", sa.String(64), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
    )
    op.create_index("ix_escrowed_keys_borrower", "escrowed_keys", ["borrower"])
