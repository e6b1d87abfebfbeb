"""Quarantines have a cause, which was the beginning of their reason."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_CAUSES = (
    "agent_down",
    "agent_lost",
    "device_failed",
    "host_fenced",
    "lender_lost",
    "offline_stuck",
    "permission_differs",
    "permission_left",
    "sanitize_failed",
    "unknown_attachment",
)


def upgrade() -> None:
    """Add the cause and fill it; a leader of the former release leaves it as it is, and writes the reason on."""
    with op.batch_alter_table("slices") as batch:
        batch.add_column(sa.Column("cause", sa.String(32), nullable=True))
        batch.add_column(sa.Column("failure", sa.Integer(), nullable=True))
    with op.batch_alter_table("buffers") as batch:
        batch.add_column(sa.Column("cause", sa.String(32), nullable=True))
    slices, buffers = (
        sa.table(name, *map(sa.column, ("state", "reason", "cause", "failure"))) for name in ("slices", "buffers")
    )
    for table in (slices, buffers):
        _fill_cause(table)
    _fill_failure(slices)


def _fill_cause(table: sa.TableClause) -> None:
    quarantined = table.c.state == "quarantined"
    for cause in _CAUSES:
        begins = sa.func.substr(table.c.reason, 1, len(cause)) == cause
        op.execute(table.update().where(quarantined, begins).values(cause=cause))
    op.execute(table.update().where(quarantined, table.c.cause.is_(None)).values(cause="unknown"))


def _fill_failure(slices: sa.TableClause) -> None:
    failed = slices.c.cause == "device_failed"
    for (reason,) in op.get_bind().execute(sa.select(slices.c.reason).where(failed).distinct()).all():
        if number := re.match(r"device_failed: failure (\d+) of ", reason):
            op.execute(slices.update().where(failed, slices.c.reason == reason).values(failure=int(number[1])))
