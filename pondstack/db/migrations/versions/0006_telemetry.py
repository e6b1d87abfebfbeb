"""What agents measure of the guests."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NAME = sa.String(255)
VALUE = sa.Float(53)


def upgrade() -> None:
    """Add the table; a controller of the former release leaves it alone."""
    op.create_table(
        "telemetry",
        sa.Column("consumer_uuid", sa.String(36), primary_key=True),
        sa.Column("period_seconds", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("taken_at", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("metric", sa.String(32), primary_key=True),
        sa.Column("node", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("host", NAME, primary_key=True),
        sa.Column("readings", sa.Integer(), nullable=False),
        sa.Column("minimum", VALUE, nullable=True),
        sa.Column("mean", VALUE, nullable=True),
        sa.Column("maximum", VALUE, nullable=True),
        sa.Column("reason", NAME, nullable=False),
    )
    op.create_index("ix_telemetry_age", "telemetry", ["period_seconds", "taken_at"])
