"""Leadership ends: the lease's end and its successor; the controllers that take part."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NAME = sa.String(255)
SECONDS = sa.Float(53)


def upgrade() -> None:
    """Add the lease; a leader of the former schema has none, so that the first new controller takes over at once."""
    with op.batch_alter_table("leadership") as batch:
        batch.add_column(sa.Column("expires_at", SECONDS, nullable=False, server_default="0"))
        batch.add_column(sa.Column("successor", NAME, nullable=False, server_default=""))
    op.create_table(
        "controllers",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("holder", NAME, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("started_at", SECONDS, nullable=False),
        sa.Column("seen_at", SECONDS, nullable=False),
        sa.Column("followed_sequence", sa.BigInteger(), nullable=False),
    )
