"""Which notifications of plans and of hosts' sleeps were sent."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "transition_notices",
        sa.Column("subject_uuid", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("sent_at", sa.Float(53), nullable=False),
    )
