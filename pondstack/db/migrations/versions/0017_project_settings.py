"""What operators set per project: the default policy of plain flavors, and a cap of pool memory."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the settings."""
    op.create_table(
        "project_settings",
        sa.Column("project_id", sa.String(255), primary_key=True),
        sa.Column("default_policy", sa.String(8), nullable=True),
        sa.Column("max_pool_percent", sa.Integer(), nullable=True),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )
