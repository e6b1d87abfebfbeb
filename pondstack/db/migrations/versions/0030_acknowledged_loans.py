"""Loans say whether their borrower has had their keys."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column that the former release does not fill."""
    with op.batch_alter_table("remote_allocations") as loans:
        loans.add_column(sa.Column("acknowledged", sa.Boolean(), nullable=True))
