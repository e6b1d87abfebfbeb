"""Loans that Placement has no claim of keep since when."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; a leader of the former release leaves it empty."""
    with op.batch_alter_table("remote_allocations") as batch:
        batch.add_column(sa.Column("unclaimed_since", sa.Float(53), nullable=True))
