"""Hosts are told at run time whether their kernels tier."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the order, none yet: as the agents are configured. A leader of the former release tells none."""
    with op.batch_alter_table("hosts") as batch:
        batch.add_column(sa.Column("tiering_on", sa.Boolean(), nullable=True))
