"""Credentials that are not believed any more, by whose they were."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the revocations."""
    op.create_table(
        "revocations",
        sa.Column("identity", sa.String(300), primary_key=True),
        sa.Column("revoked_at", sa.Float(53), nullable=False),
    )
