"""Jobs of the planner, and their reports."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMBLOB

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

BLOB = sa.LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb")


def upgrade() -> None:
    """Add two tables."""
    op.create_table(
        "planner_jobs",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("controller", sa.String(255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("begun_at", sa.Float(53), nullable=True),
        sa.Column("ended_at", sa.Float(53), nullable=True),
    )
    op.create_index("ix_planner_jobs_state", "planner_jobs", ["state"])
    op.create_index("ix_planner_jobs_created", "planner_jobs", ["created_at"])
    op.create_table(
        "planner_reports",
        sa.Column("job_uuid", sa.String(36), primary_key=True),
        sa.Column("answers", BLOB, nullable=False),
        sa.Column("page", BLOB, nullable=False),
    )
