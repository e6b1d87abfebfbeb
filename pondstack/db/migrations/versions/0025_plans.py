"""Consolidation plans with their actions, its freeze, and what hosts measure of themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add four tables."""
    op.create_table(
        "plans",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("trigger", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("afterwards", sa.String(16), nullable=False),
        sa.Column("at_once", sa.Boolean(), nullable=False),
        sa.Column("target", sa.String(255), nullable=False),
        sa.Column("ending", sa.String(16), nullable=False),
        sa.Column("effect", sa.JSON(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("inputs", sa.JSON(), nullable=False),
        sa.Column("left_out", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.Column("decided_at", sa.Float(53), nullable=True),
        sa.Column("ended_at", sa.Float(53), nullable=True),
    )
    op.create_index("ix_plans_state", "plans", ["state"])
    op.create_index("ix_plans_created", "plans", ["created_at"])
    op.create_table(
        "plan_actions",
        sa.Column("plan_uuid", sa.String(36), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("chain", sa.String(255), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("destination", sa.String(255), nullable=False),
        sa.Column("mib", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("begun_at", sa.Float(53), nullable=True),
    )
    op.create_index("ix_plan_actions_begun", "plan_actions", ["kind", "begun_at"])
    op.create_table(
        "consolidation_freeze",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", sa.Float(53), nullable=False),
    )
    op.create_table(
        "host_telemetry",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("metric", sa.String(32), primary_key=True),
        sa.Column("taken_at", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("value", sa.Float(53), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
    )
    op.create_index("ix_host_telemetry_age", "host_telemetry", ["taken_at"])
