"""Hosts say how their kernel tiers between local and pool memory."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the settings; a controller of the former release writes its row without them, and none is known then."""
    with op.batch_alter_table("hosts") as batch:
        batch.add_column(sa.Column("tiering", sa.JSON(), nullable=True))
