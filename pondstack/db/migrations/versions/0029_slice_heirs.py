"""Allocations of pool memory that are handed over to another host, by whose allocation."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column that the former release does not fill."""
    with op.batch_alter_table("allocations") as allocations:
        allocations.add_column(sa.Column("heir", sa.String(36)))
    op.create_index("ix_allocations_heir", "allocations", ["heir"])
