"""The history of instances: what they are, the least memory that each left untouched; the source of samples."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

NAME = sa.String(255)
UUID = sa.String(36)


def upgrade() -> None:
    """Add the tables, and a column that a controller of the former release leaves to its default: measured."""
    op.create_table(
        "instances",
        sa.Column("instance_uuid", UUID, primary_key=True),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("flavor_name", NAME, nullable=False),
        sa.Column("memory_mib", sa.Integer(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("image_uuid", UUID, nullable=False),
        sa.Column("image_os", NAME, nullable=False),
        sa.Column("zone", NAME, nullable=False),
        sa.Column("name_key", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sized_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
    )
    op.create_index("ix_instances_project", "instances", ["project_id", "created_at"])
    op.create_index("ix_instances_deleted", "instances", ["deleted_at"])
    op.create_index("ix_instances_image", "instances", ["image_uuid"])
    op.create_table(
        "lifetime_labels",
        sa.Column("instance_uuid", UUID, primary_key=True),
        sa.Column("node", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("untouched_mib", sa.Float(53), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("observed_until", sa.BigInteger(), nullable=False),
        sa.Column("observed_seconds", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
    )
    op.create_index("ix_lifetime_labels_age", "lifetime_labels", ["observed_until"])
    op.create_table(
        "history",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("salt", sa.String(64), nullable=False),
        sa.Column("complete_since", sa.BigInteger(), nullable=True),
        sa.Column("read_until", sa.BigInteger(), nullable=True),
    )
    with op.batch_alter_table("telemetry") as batch:
        batch.add_column(sa.Column("source", sa.String(16), nullable=False, server_default="measured"))
