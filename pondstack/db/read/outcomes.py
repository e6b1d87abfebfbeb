"""What models decided and what came of it, and the counters of instances, read in one query each."""

from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import CounterRow, InstanceRow, LabelRow, SplitRow
from pondstack.db.store.telemetry import WHOLE
from pondstack.domain.history import Decided, GuestCounters, coverage
from pondstack.domain.telemetry import Source


def counters(session: Session, since: datetime) -> list[GuestCounters]:
    """Return the instances that were there at `since` or later, with what is known of their counters."""
    row = InstanceRow
    query = (
        select(row.instance_uuid, row.project_id, row.memory_mib, row.vcpus, CounterRow.counters, CounterRow.source)
        .outerjoin(CounterRow, CounterRow.instance_uuid == row.instance_uuid)
        .where(or_(row.deleted_at.is_(None), row.deleted_at >= int(since.timestamp())))
    )
    return [
        GuestCounters(
            uuid,
            project,
            memory_mib,
            vcpus,
            {metric: total / readings for metric, (total, readings) in (sums or {}).items() if readings},
            source or Source.MEASURED,
        )
        for uuid, project, memory_mib, vcpus, sums, source in session.execute(query)
    ]


def decided(session: Session, since: datetime, min_coverage: float, gap_seconds: int) -> list[Decided]:
    """Return the instances that were placed since by a model's word, as far as their splits are remembered."""
    now = float(session.execute(select(now_seconds())).scalar_one())
    row, label, instance = SplitRow, LabelRow, InstanceRow
    query = (
        select(row, label, instance.sized_at, instance.deleted_at)
        .outerjoin(label, and_(label.instance_uuid == row.instance_uuid, label.node == WHOLE))
        .outerjoin(instance, instance.instance_uuid == row.instance_uuid)
        .where(row.model_version != "", row.created_at >= since.timestamp())
    )
    return [
        _decided(split, seen, sized_at, deleted_at, now, min_coverage, gap_seconds)
        for split, seen, sized_at, deleted_at in session.execute(query)
    ]


def _decided(
    row: SplitRow,
    label: LabelRow | None,
    sized_at: int | None,
    deleted_at: int | None,
    now: float,
    min_coverage: float,
    gap_seconds: int,
) -> Decided:
    whole_life = False
    if label is not None and deleted_at is not None and deleted_at <= now:
        begun = label.first_at if sized_at is None else sized_at
        share = coverage(label.observed_seconds, begun, label.first_at, float(deleted_at), gap_seconds)
        whole_life = share >= min_coverage
    return Decided(
        row.instance_uuid,
        row.model_version,
        row.source,
        row.pool_mib,
        float((row.inputs or {}).get("pdm", 0.0)),
        None if label is None else int(label.untouched_mib),
        0 if label is None else label.observed_seconds,
        whole_life,
    )
