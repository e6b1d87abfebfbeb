"""What operators set of consolidation at run time."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "consolidation_limits",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("reserve_percent", sa.Float(53), nullable=True),
        sa.Column("least_awake", sa.Integer(), nullable=True),
    )
