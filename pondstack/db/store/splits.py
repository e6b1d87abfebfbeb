"""The remembered splits in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, delete, exists, insert, or_, select, update
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, InstanceRow, SplitRow
from pondstack.domain.errors import NotFound
from pondstack.domain.sizing import CORRECTED, PRESENT, Split, corrected_split
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
    """Keep a split in place of an older one. One that only says what the instance has takes no reason away.

    What was corrected is kept for what it says of the past as long as the instance is placed all local: the mark tells
    the rest. One that only says that it is corrected is news of nothing.
    """
    split, mine = item.split, SplitRow.instance_uuid == item.instance_uuid
    if split.source == CORRECTED:
        return
    moment = now_seconds() - item.age_seconds
    kept = SplitRow.created_at > moment
    if not split.pool_mib:
        kept = or_(kept, SplitRow.corrected_at.is_not(None))
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
    _insert(session, item, moment)


def correct(session: Session, item: RememberedSplit) -> None:
    """Mark an instance's split as corrected. `item`: what it has, which is kept where nothing is remembered yet."""
    if session.get(SplitRow, item.instance_uuid) is None:
        _insert(session, item, now_seconds() - item.age_seconds)
    _mark(session, item.instance_uuid, now_seconds())


def put_back(session: Session, instance_uuid: str) -> None:
    """Undo correct()."""
    _mark(session, instance_uuid, None)


def _mark(session: Session, instance_uuid: str, corrected_at: Any) -> None:
    session.execute(
        update(SplitRow).where(SplitRow.instance_uuid == instance_uuid).values(corrected_at=corrected_at),
        execution_options={"synchronize_session": False},
    )


def _insert(session: Session, item: RememberedSplit, moment: Any) -> None:
    split = item.split
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
    """Forget old splits of instances that hold no pool memory, corrected ones once the instance was deleted."""
    ended = exists().where(InstanceRow.instance_uuid == SplitRow.instance_uuid, InstanceRow.deleted_at.is_not(None))
    session.execute(
        delete(SplitRow).where(
            SplitRow.created_at < now_seconds() - keep_seconds,
            ~exists().where(AllocationRow.consumer_uuid == SplitRow.instance_uuid),
            or_(SplitRow.corrected_at.is_(None), ended),
        ),
        execution_options={"synchronize_session": False},
    )


def record(session: Session, instance_uuid: str) -> SplitRecord:
    """Return what an instance was placed with; raises NotFound."""
    found = session.execute(_with_project().where(SplitRow.instance_uuid == instance_uuid)).one_or_none()
    if found is None:
        raise NotFound(
            f"no split of instance {instance_uuid} is remembered: neither its flavor nor a default policy may give it "
            "pool memory, or it was placed long ago and holds none"
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
        row.corrected_at,
    )


def _split(row: SplitRow) -> Split:
    if row.corrected_at is not None:
        return corrected_split(row.local_mib + row.pool_mib)
    return Split(
        row.local_mib, row.pool_mib, row.source, row.confidence, row.reason, row.model_version, row.inputs or {}
    )
