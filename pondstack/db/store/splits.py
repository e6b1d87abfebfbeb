"""The remembered splits in SQL."""

from sqlalchemy import delete, exists, insert, select
from sqlalchemy.orm import Session

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, SplitRow
from pondstack.domain.sizing import Split


def recall(session: Session, instance_uuid: str, flavor_key: str) -> Split | None:
    """Return the split that was decided for this instance with this flavor."""
    row = session.get(SplitRow, instance_uuid)
    if row is None or row.flavor_key != flavor_key:
        return None
    return Split(row.local_mib, row.pool_mib, row.source, row.confidence, row.reason)


def present(session: Session, instance_uuid: str, guest_mib: int) -> Split | None:
    """Return the split that a running instance of this size has now."""
    query = select(AllocationRow).where(
        AllocationRow.consumer_uuid == instance_uuid, AllocationRow.guest_mib == guest_mib
    )
    row = session.execute(query.order_by(AllocationRow.created_at.desc()).limit(1)).scalar()
    if row is None or row.pool_mib >= guest_mib:
        return None
    reason = f"the instance runs with {row.pool_mib} MiB of pool memory and keeps it"
    return Split(guest_mib - row.pool_mib, row.pool_mib, source="present", confidence=1.0, reason=reason)


def remember(session: Session, instance_uuid: str, flavor_key: str, split: Split) -> None:
    """Keep the split, in place of an older one."""
    session.execute(delete(SplitRow).where(SplitRow.instance_uuid == instance_uuid))
    session.execute(
        insert(SplitRow).values(
            instance_uuid=instance_uuid,
            flavor_key=flavor_key,
            local_mib=split.local_mib,
            pool_mib=split.pool_mib,
            source=split.source,
            confidence=split.confidence,
            reason=split.reason,
            created_at=now_seconds(),
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
