"""Hosts say which allocations they cannot take offline."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the reasons; a controller of the former release writes its row without them, and none is known then."""
    with op.batch_alter_table("hosts") as batch:
        batch.add_column(sa.Column("stuck", sa.JSON(), nullable=True))
