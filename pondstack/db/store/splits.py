"""The remembered splits in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, delete, exists, insert, or_, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, InstanceRow, SplitRow
from pondstack.domain.errors import NotFound
from pondstack.domain.sizing import PRESENT, Split
from pondstack.ledger.records import SplitRecord
from pondstack.ledger.store import RememberedSplit


def remembered(session: Session, uuids: Sequence[str] | None = None) -> list[RememberedSplit]:
    """Return what is remembered, of all instances or of these."""
    query = select(SplitRow, now_seconds())
    if uuids is not None:
        query = query.where(SplitRow.instance_uuid.in_(uuids))
    return [
        RememberedSplit(
            row.instance_uuid,
            row.flavor_key,
            _split(row),
            max(0.0, now - row.created_at),
        )
        for row, now in session.execute(query)
    ]


def remember(session: Session, item: RememberedSplit) -> None:
    """Keep a split in place of an older one. One that only says what the instance has takes no reason away."""
    split, mine = item.split, SplitRow.instance_uuid == item.instance_uuid
    moment = now_seconds() - item.age_seconds
    kept = SplitRow.created_at > moment
    if split.source == PRESENT:
        same = and_(
            SplitRow.flavor_key == item.flavor_key,
            SplitRow.local_mib == split.local_mib,
            SplitRow.pool_mib == split.pool_mib,
        )
        kept = or_(kept, same)
    if session.execute(select(SplitRow.instance_uuid).where(mine, kept)).first() is not None:
        return
    session.execute(delete(SplitRow).where(mine))
    session.execute(
        insert(SplitRow).values(
            instance_uuid=item.instance_uuid,
            flavor_key=item.flavor_key,
            local_mib=split.local_mib,
            pool_mib=split.pool_mib,
            source=split.source,
            confidence=split.confidence,
            reason=split.reason,
            created_at=moment,
            model_version=split.model_version,
            inputs=split.inputs or None,
        )
    )


def prune(session: Session, keep_seconds: float) -> None:
    """Forget old splits of instances that hold no pool memory."""
    session.execute(
        delete(SplitRow).where(
            SplitRow.created_at < now_seconds() - keep_seconds,
            ~exists().where(AllocationRow.consumer_uuid == SplitRow.instance_uuid),
        ),
        execution_options={"synchronize_session": False},
    )


def record(session: Session, instance_uuid: str) -> SplitRecord:
    """Return what an instance was placed with; raises NotFound."""
    found = session.execute(_with_project().where(SplitRow.instance_uuid == instance_uuid)).one_or_none()
    if found is None:
        raise NotFound(
            f"no split of instance {instance_uuid} is remembered: it was not placed with pond: specs that may give it "
            "pool memory, or long ago and holds none"
        )
    return _record(*found)


def records(
    session: Session, *, project_id: str | None = None, limit: int | None = None, marker: str | None = None
) -> list[SplitRecord]:
    """Return what instances, or those of a project, were placed with, by UUID; raises NotFound for a marker of none."""
    query = _with_project().order_by(SplitRow.instance_uuid)
    if project_id is not None:
        query = query.where(InstanceRow.project_id == project_id)
    if marker is not None:
        # Of another project's instance it is as unknown as any.
        if session.execute(query.where(SplitRow.instance_uuid == marker)).first() is None:
            raise NotFound(f"marker: no split of instance {marker} is remembered; begin the list again")
        query = query.where(SplitRow.instance_uuid > marker)
    return [_record(*row) for row in session.execute(query.limit(limit))]


def _with_project() -> Select[Any]:
    """Return the query of splits with the projects of their instances, which Nova tells and a scheduler does not."""
    instances = InstanceRow.instance_uuid == SplitRow.instance_uuid
    return select(SplitRow, InstanceRow.project_id).outerjoin(InstanceRow, instances)


def _record(row: SplitRow, project_id: str | None) -> SplitRecord:
    return SplitRecord(
        row.instance_uuid,
        row.local_mib,
        row.pool_mib,
        row.source,
        row.confidence,
        row.reason,
        row.created_at,
        project_id,
        row.model_version,
        row.inputs or {},
    )


def _split(row: SplitRow) -> Split:
    return Split(
        row.local_mib, row.pool_mib, row.source, row.confidence, row.reason, row.model_version, row.inputs or {}
    )
