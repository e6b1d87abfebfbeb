"""The history of instances, read: for training, for percentiles and survival, and of one instance."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.connection.engine import Database
from pondstack.db.models import HistoryRow, InstanceRow, LabelRow, QosDecisionRow
from pondstack.db.read import marks, outcomes
from pondstack.db.store.telemetry import WHOLE
from pondstack.domain.errors import NotFound
from pondstack.domain.history import Decided, GuestCounters, Lifetime, NodeLabel, Selection, coverage, moment
from pondstack.domain.qos import TOUCHED
from pondstack.domain.telemetry import Source


class SqlHistory:
    """Each method is one read-only transaction; see pondstack.ledger.reader.HistoryReader."""

    def __init__(self, database: Database, gap_seconds: int) -> None:
        self._database = database
        self._gap = gap_seconds

    def lifetimes(self, chosen: Selection) -> list[Lifetime]:
        """Return instances, oldest first."""
        return self._database.read(lambda session: _lifetimes(session, chosen, self._gap))

    def lifetime(self, instance_uuid: str) -> Lifetime:
        """Return one instance; raises NotFound."""
        return self._database.read(lambda session: _one(session, instance_uuid, self._gap))

    def labels(self, instance_uuid: str) -> list[NodeLabel]:
        """Return what was seen of an instance's nodes, by node; the guest as a whole comes first."""
        return self._database.read(lambda session: _labels(session, instance_uuid))

    def counters(self, since: datetime) -> list[GuestCounters]:
        """Return the counters of instances that were there at `since` or later."""
        return self._database.read(lambda session: outcomes.counters(session, since))

    def decided(self, since: datetime, min_coverage: float) -> list[Decided]:
        """Return the instances that models decided since, and what came of it."""
        return self._database.read(lambda session: outcomes.decided(session, since, min_coverage, self._gap))

    def complete_since(self) -> datetime | None:
        """Return from when on every instance is known, None: Nova's past was not read yet."""
        return self._database.read(_complete_since)


def _lifetimes(session: Session, chosen: Selection, gap_seconds: int) -> list[Lifetime]:
    row, since, until = InstanceRow, int(chosen.since.timestamp()), int(chosen.until.timestamp())
    query = _joined().where(row.created_at < until, or_(row.deleted_at.is_(None), row.deleted_at >= since))
    if chosen.project_id is not None:
        query = query.where(row.project_id == chosen.project_id)
    if chosen.flavor_name is not None:
        query = query.where(row.flavor_name == chosen.flavor_name)
    newest = query.order_by(row.created_at.desc(), row.instance_uuid).limit(chosen.limit)
    end = min(float(until), _now(session))
    found = [_lifetime(item, end, gap_seconds) for item in session.execute(newest)]
    if chosen.marks:
        weekly = marks.weekly(session, since, end, chosen.min_coverage)
        found = [replace(item, marks=weekly.get(item.instance_uuid, ())) for item in found]
    return [item.trained_with(chosen.min_coverage) for item in reversed(found)]


def _one(session: Session, instance_uuid: str, gap_seconds: int) -> Lifetime:
    found = session.execute(_joined().where(InstanceRow.instance_uuid == instance_uuid)).first()
    if found is None:
        raise NotFound(f"no history of an instance {instance_uuid}: Nova has not told of it, or it ended long ago")
    return _lifetime(found, _now(session), gap_seconds)


def _labels(session: Session, instance_uuid: str) -> list[NodeLabel]:
    query = select(LabelRow).where(LabelRow.instance_uuid == instance_uuid).order_by(LabelRow.node)
    return [
        NodeLabel(
            node=None if row.node == WHOLE else row.node,
            untouched_mib=int(row.untouched_mib),
            observed_seconds=row.observed_seconds,
            observed_until=moment(row.observed_until),
            source=Source(row.source),
        )
        for row in session.execute(query).scalars()
    ]


def _complete_since(session: Session) -> datetime | None:
    found = session.execute(select(HistoryRow.complete_since)).scalar()
    return None if found is None else moment(found)


def _joined() -> Select[Any]:
    whole = and_(LabelRow.instance_uuid == InstanceRow.instance_uuid, LabelRow.node == WHOLE)
    judged = QosDecisionRow
    mine = and_(judged.consumer_uuid == InstanceRow.instance_uuid, judged.decided_at >= InstanceRow.sized_at)
    last = (
        select(func.max(QosDecisionRow.id).label("id"))
        .where(QosDecisionRow.verdict.in_([str(item) for item in TOUCHED]), QosDecisionRow.untouched_mib.is_not(None))
        .group_by(QosDecisionRow.consumer_uuid)
    )
    return (
        select(InstanceRow, LabelRow, judged.decided_at, judged.untouched_mib)
        .outerjoin(LabelRow, whole)
        .outerjoin(judged, and_(mine, judged.id.in_(last)))
    )


def _lifetime(found: Row[Any], end: float, gap_seconds: int) -> Lifetime:
    row: InstanceRow = found[0]
    label: LabelRow | None = found[1]
    judged = None if found[2] is None else (moment(found[2]), int(found[3]))
    ended = row.deleted_at is not None and row.deleted_at <= end
    life_ends = float(row.deleted_at) if ended and row.deleted_at is not None else end
    share = 0.0
    if label is not None:
        share = coverage(label.observed_seconds, row.sized_at, label.first_at, life_ends, gap_seconds)
    return Lifetime(
        instance_uuid=row.instance_uuid,
        project_id=row.project_id,
        flavor_name=row.flavor_name,
        memory_mib=row.memory_mib,
        vcpus=row.vcpus,
        image_os=row.image_os,
        zone=row.zone,
        name_key=row.name_key,
        created_at=moment(row.created_at),
        deleted_at=moment(life_ends) if ended else None,
        untouched_mib=_least(label, judged),
        coverage=share,
        sized_at=moment(row.sized_at),
        source=Source.MEASURED if label is None else Source(label.source),
        judged=judged,
    )


def _least(label: LabelRow | None, judged: tuple[datetime, int] | None) -> int | None:
    """Return the least untouched memory that is known by the label and by the monitor's decision."""
    known = [] if label is None else [int(label.untouched_mib)]
    return min([*known, *([] if judged is None else [judged[1]])], default=None)


def _now(session: Session) -> float:
    return float(session.execute(select(now_seconds())).scalar_one())
