"""Heirs of slices say whether they need the CPU caches of their former host written back."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column that the former release does not fill."""
    with op.batch_alter_table("allocations") as allocations:
        allocations.add_column(sa.Column("write_back", sa.Boolean(), nullable=True))
