"""Controllers say when they last reached themselves through the message broker."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the moment; a controller of the former release writes its row without it, and nothing is known of it."""
    with op.batch_alter_table("controllers") as batch:
        batch.add_column(sa.Column("reached_at", sa.Float(53), nullable=True))
