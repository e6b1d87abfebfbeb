"""The QoS monitor's decisions, re-predictions, tenants' figures of performance, and notifications that were sent."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

UUID = sa.String(36)
NAME = sa.String(255)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "qos_decisions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("consumer_uuid", UUID, nullable=False),
        sa.Column("allocation_uuid", UUID, nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("expected_percent", sa.Float(53), nullable=True),
        sa.Column("untouched_mib", sa.Float(53), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("decided_at", sa.Float(53), nullable=False),
    )
    op.create_index("ix_qos_decisions_consumer", "qos_decisions", ["consumer_uuid", "id"])
    op.create_index("ix_qos_decisions_age", "qos_decisions", ["decided_at"])
    op.create_table(
        "qos_repredictions",
        sa.Column("consumer_uuid", UUID, primary_key=True),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("memory_mib", sa.Integer(), nullable=False),
        sa.Column("pool_mib", sa.Integer(), nullable=False),
        sa.Column("wanted_mib", sa.Integer(), nullable=False),
        sa.Column("untouched_mib", sa.Float(53), nullable=False),
        sa.Column("age_seconds", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("predicted_at", sa.Float(53), nullable=False),
    )
    op.create_table(
        "qos_performance",
        sa.Column("consumer_uuid", UUID, primary_key=True),
        sa.Column("metric", sa.String(64), primary_key=True),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("higher_is_better", sa.Boolean(), nullable=False),
        sa.Column("readings", sa.BigInteger(), nullable=False),
        sa.Column("mean", sa.Float(53), nullable=False),
        sa.Column("newest", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )
    op.create_index("ix_qos_performance_age", "qos_performance", ["updated_at"])
    op.create_table(
        "mitigation_notices",
        sa.Column("mitigation_uuid", UUID, primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("sent_at", sa.Float(53), nullable=False),
    )
