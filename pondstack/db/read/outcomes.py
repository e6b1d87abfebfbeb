"""What models decided and what came of it, and the counters of instances, read in one query each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import CounterRow, InstanceRow, LabelRow, QosDecisionRow, SplitRow
from pondstack.db.store.telemetry import WHOLE
from pondstack.domain.history import Decided, GuestCounters, coverage
from pondstack.domain.qos import TOUCHED
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
    found = [
        _decided(split, seen, sized_at, deleted_at, now, min_coverage, gap_seconds)
        for split, seen, sized_at, deleted_at in session.execute(query)
    ]
    return found + _mitigated(session, since, {item.instance_uuid for item in found})


def _mitigated(session: Session, since: datetime, known: set[str]) -> list[Decided]:
    """Return the over-predictions of instances whose splits say nothing of them any more: they were mitigated.

    As the QoS monitor's decisions have them; a model's budget would forget them with the pool memory else.
    """
    row, label = QosDecisionRow, LabelRow
    query = (
        select(row.consumer_uuid, row.evidence, label.untouched_mib, label.observed_seconds)
        .outerjoin(label, and_(label.instance_uuid == row.consumer_uuid, label.node == WHOLE))
        .where(row.verdict.in_([str(item) for item in TOUCHED]), row.decided_at >= since.timestamp())
        .order_by(row.id.desc())
    )
    found: dict[str, Decided] = {}
    for uuid, evidence, untouched, observed in session.execute(query):
        if evidence.get("split_model") and uuid not in known and uuid not in found:
            found[uuid] = _judged(uuid, evidence, untouched, observed)
    return list(found.values())


def _judged(uuid: str, evidence: Mapping[str, Any], untouched: float | None, observed: int | None) -> Decided:
    seen = [value for value in (untouched, evidence.get("memory_untouched_mib")) if value is not None]
    return Decided(
        uuid,
        evidence["split_model"],
        evidence["split_source"],
        int(evidence["pool_mib"]),
        float(evidence["pdm_percent"]),
        int(min(seen)) if seen else None,
        observed or 0,
        whole_life=False,
    )


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
