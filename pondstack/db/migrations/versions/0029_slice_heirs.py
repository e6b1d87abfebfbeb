"""Allocations of pool memory that are handed over to another host, by whose allocation; and who knows of such."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns that the former release does not fill."""
    with op.batch_alter_table("allocations") as allocations:
        allocations.add_column(sa.Column("heir", sa.String(36)))
    op.create_index("ix_allocations_heir", "allocations", ["heir"])
    with op.batch_alter_table("hosts") as hosts:
        hosts.add_column(sa.Column("hands_over", sa.JSON()))
    with op.batch_alter_table("controllers") as controllers:
        controllers.add_column(sa.Column("heirs_holder", sa.String(255)))
