"""Prediction models with their manifests."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMBLOB

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

BLOB = sa.LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb")


def upgrade() -> None:
    """Add the registry."""
    op.create_table(
        "models",
        sa.Column("version", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("blob", BLOB, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("promoted_at", sa.Float(53), nullable=True),
    )
    op.create_index("ix_models_kind", "models", ["kind", "state"])
