"""What was predicted again of long-lived VMs, in SQL: written in whole, read for the list and for their moves."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import InstanceRow, RepredictionRow, SplitRow, TelemetryRow, table
from pondstack.db.store.telemetry import LATE_SECONDS, WHOLE
from pondstack.domain.telemetry import Metric
from pondstack.ledger.qos_records import LongLived, Reprediction


def long_lived(session: Session, after_seconds: float, period_seconds: int) -> list[LongLived]:
    """Return the VMs that have had their size for so long, and that the last period of telemetry tells of.

    Not those whose pool memory a mitigation has taken away: they stay all local.
    """
    now = float(session.execute(select(now_seconds())).scalar_one())
    row, split, seen = InstanceRow, SplitRow, TelemetryRow
    newest = (
        select(
            seen.consumer_uuid,
            func.min(seen.minimum).label("untouched_mib"),
            func.max(seen.source).label("source"),
        )
        .where(
            seen.period_seconds == period_seconds,
            seen.taken_at >= int(now) - 2 * (period_seconds + LATE_SECONDS),
            seen.metric == Metric.UNTOUCHED_MIB,
            seen.node == WHOLE,
        )
        .group_by(seen.consumer_uuid)
        .subquery()
    )
    query = (
        select(row, split.pool_mib, split.source, newest.c.untouched_mib, newest.c.source)
        .join(split, split.instance_uuid == row.instance_uuid)
        .join(newest, newest.c.consumer_uuid == row.instance_uuid)
        .where(split.corrected_at.is_(None))
        .where(row.deleted_at.is_(None), row.sized_at <= int(now - after_seconds), newest.c.untouched_mib.is_not(None))
    )
    return [
        LongLived(
            one.instance_uuid,
            one.project_id,
            one.flavor_name,
            one.memory_mib,
            pool_mib,
            decided_by,
            untouched_mib,
            float(one.created_at),
            float(one.sized_at),
            source,
        )
        for one, pool_mib, decided_by, untouched_mib, source in session.execute(query)
    ]


def keep(session: Session, items: Iterable[Reprediction]) -> None:
    """Keep what was predicted again, in place of all that was."""
    now = float(session.execute(select(now_seconds())).scalar_one())
    rows = [_row(item, now) for item in items]
    session.execute(delete(RepredictionRow))
    if rows:
        session.execute(insert(table(RepredictionRow)), rows)


def _row(item: Reprediction, now: float) -> dict[str, Any]:
    return {
        "consumer_uuid": item.consumer_uuid,
        "project_id": item.project_id,
        "memory_mib": item.memory_mib,
        "pool_mib": item.pool_mib,
        "wanted_mib": item.wanted_mib,
        "untouched_mib": item.untouched_mib,
        "age_seconds": item.age_seconds,
        "source": item.source,
        "predicted_at": now,
    }


def wanted(session: Session) -> Mapping[str, int]:
    """Return the pool memory of VMs that would get another share than they have, by UUID."""
    row = RepredictionRow
    query = select(row.consumer_uuid, row.wanted_mib).where(row.wanted_mib != row.pool_mib)
    return {uuid: mib for uuid, mib in session.execute(query)}


def find(session: Session, consumer_uuid: str) -> Reprediction | None:
    """Return what was predicted again of a VM, None: nothing was."""
    row = session.get(RepredictionRow, consumer_uuid)
    return None if row is None else _record(row)


def totals(session: Session) -> tuple[int, int]:
    """Return how many VMs were predicted again, and how many MiB more of them could come from the pool."""
    row = RepredictionRow
    gain = func.sum(row.wanted_mib - row.pool_mib)
    count = session.execute(select(func.count()).select_from(row)).scalar_one()
    return int(count), int(session.execute(select(gain).where(row.wanted_mib > row.pool_mib)).scalar() or 0)


def _record(row: RepredictionRow) -> Reprediction:
    return Reprediction(
        row.consumer_uuid,
        row.project_id,
        row.memory_mib,
        row.pool_mib,
        row.wanted_mib,
        row.untouched_mib,
        row.age_seconds,
        row.source,
        row.predicted_at,
    )
