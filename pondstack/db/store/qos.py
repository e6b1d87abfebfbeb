"""The QoS monitor's rows in SQL. Each function is a part of the caller's transaction."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.upsert import upsert
from pondstack.db.models import PerformanceRow, QosDecisionRow, table
from pondstack.domain.errors import Conflict, NotFound
from pondstack.ledger.qos_records import QosDecision

MOST_METRICS = 8
"""Of one instance."""
LEAST_SECONDS = 60.0
"""Between two readings of one metric: a tenant must not keep the leader busy."""
Key = tuple[str, str, str, str]
"""Allocation, verdict, action, mode: a decision that is another one by these is kept."""


def newest(session: Session) -> dict[str, Key]:
    """Return what was decided last of each VM."""
    row = QosDecisionRow
    last = select(func.max(row.id).label("id")).group_by(row.consumer_uuid).subquery()
    columns = row.consumer_uuid, row.allocation_uuid, row.verdict, row.action, row.mode
    found = session.execute(select(*columns).join(last, last.c.id == row.id))
    return {uuid: (allocation, verdict, action, mode) for uuid, allocation, verdict, action, mode in found}


def keep(session: Session, decisions: Sequence[QosDecision]) -> None:
    """Keep decisions, as of now."""
    if not decisions:
        return
    now = float(session.execute(select(now_seconds())).scalar_one())
    session.execute(insert(table(QosDecisionRow)), [_row(item, now) for item in decisions])


def _row(item: QosDecision, now: float) -> dict[str, Any]:
    return {
        "consumer_uuid": item.consumer_uuid,
        "allocation_uuid": item.allocation_uuid,
        "project_id": item.project_id,
        "host": item.host,
        "verdict": item.verdict,
        "action": item.action,
        "mode": item.mode,
        "reason": item.reason,
        "expected_percent": item.expected_percent,
        "untouched_mib": item.untouched_mib,
        "evidence": dict(item.evidence),
        "decided_at": now,
    }


def decisions(
    session: Session,
    *,
    consumer_uuid: str | None = None,
    action: str | None = None,
    limit: int | None = None,
    marker: int | None = None,
) -> list[QosDecision]:
    """Return decisions, the newest first, those before `marker`; raises NotFound for an unknown one."""
    row = QosDecisionRow
    query = select(row).order_by(row.id.desc())
    if consumer_uuid is not None:
        query = query.where(row.consumer_uuid == consumer_uuid)
    if action is not None:
        query = query.where(row.action == action)
    if marker is not None:
        if session.get(row, marker) is None:
            raise NotFound(f"marker: no decision {marker} is kept; begin the list again")
        query = query.where(row.id < marker)
    return [_decision(item) for item in session.execute(query.limit(limit)).scalars()]


def _decision(row: QosDecisionRow) -> QosDecision:
    return QosDecision(
        row.consumer_uuid,
        row.allocation_uuid,
        row.project_id,
        row.host,
        row.verdict,
        row.action,
        row.mode,
        row.reason,
        row.expected_percent,
        row.untouched_mib,
        row.evidence,
        row.decided_at,
        row.id,
    )


def perform(
    session: Session, consumer_uuid: str, project_id: str, metric: str, value: float, *, higher_is_better: bool
) -> None:
    """Take a tenant's reading of a metric in; of another direction than before the figure begins anew.

    Raises Conflict for one metric too many of an instance, or a reading too soon after the last one.
    """
    row = PerformanceRow
    now = float(session.execute(select(now_seconds())).scalar_one())
    known = {
        item.metric: item for item in session.execute(select(row).where(row.consumer_uuid == consumer_uuid)).scalars()
    }
    found = known.get(metric)
    if found is None and len(known) >= MOST_METRICS:
        raise Conflict(
            f"instance {consumer_uuid} has {len(known)} metrics already ({', '.join(sorted(known))}); use one"
        )
    if found is not None and now - found.updated_at < LEAST_SECONDS:
        raise Conflict(f"the last reading of {metric} is less than {LEAST_SECONDS:g} s old; send means of longer times")
    readings, mean = 0, 0.0
    if found is not None and found.higher_is_better == higher_is_better:
        readings, mean = found.readings, found.mean
    values = {
        "consumer_uuid": consumer_uuid,
        "metric": metric,
        "project_id": project_id,
        "higher_is_better": higher_is_better,
        "readings": readings + 1,
        "mean": mean + (value - mean) / (readings + 1),
        "newest": value,
        "updated_at": now,
    }
    upsert(session, table(row), [values])


def prune(session: Session, keep_seconds: float) -> None:
    """Forget old decisions, and figures of performance that came long ago."""
    oldest = now_seconds() - keep_seconds
    for row, column in (
        (QosDecisionRow, QosDecisionRow.decided_at),
        (PerformanceRow, PerformanceRow.updated_at),
    ):
        session.execute(delete(row).where(column < oldest), execution_options={"synchronize_session": False})
