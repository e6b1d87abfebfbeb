"""VMs with pool memory and what was seen of it, read in bulk: one query for all, one more for those that are suspect.

The labels say what each node was left untouched at least since the VM has its size: a row for each node, where samples
are hundreds. They forget nothing, not even a former start or a former split, so that a VM which they suspect is looked
up among the newest samples of its own host.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session, aliased

from pondstack.db.connection.clock import now_seconds
from pondstack.db.models import AllocationRow, LabelRow, SplitRow, TelemetryRow
from pondstack.db.store.labels import AT_A_TIME
from pondstack.db.store.telemetry import SAMPLE, WHOLE
from pondstack.domain.pool_guest import PoolGuest
from pondstack.domain.purpose import Purpose
from pondstack.domain.telemetry import Metric, Source

LOCAL_NODE = 0
"""The guest's node with CPUs; the others are pool memory, one for each extent."""


def pool_guests(session: Session, limit: Callable[[int], float], fresh_seconds: float) -> list[PoolGuest]:
    """Return all VMs with pool memory; `limit(pool_mib)`: how much of it a VM may touch without being suspect."""
    rows = _rows(session)
    held = Counter(row.consumer_uuid for row in rows)
    suspects = {row.allocation_uuid: row for row in rows if _fresh(row, fresh_seconds) and _suspect(row, limit)}
    newest = _newest(session, suspects.values(), fresh_seconds)
    return [
        _guest(
            row,
            newest.get(row.allocation_uuid) if row.allocation_uuid in suspects else _label(row, fresh_seconds),
            held[row.consumer_uuid] > 1,
        )
        for row in rows
    ]


def _rows(session: Session) -> Sequence[Any]:
    row, split, whole = AllocationRow, SplitRow, aliased(LabelRow)
    nodes = (
        select(
            LabelRow.instance_uuid,
            func.sum(LabelRow.untouched_mib).label("untouched_mib"),
            func.count().label("nodes"),
            func.min(LabelRow.observed_until).label("observed_until"),
            func.max(LabelRow.source).label("source"),
        )
        .where(LabelRow.node > LOCAL_NODE)
        .group_by(LabelRow.instance_uuid)
        .subquery()
    )
    query = (
        select(
            row.uuid.label("allocation_uuid"),
            row.consumer_uuid,
            row.project_id,
            row.host,
            row.guest_mib,
            row.pool_mib,
            row.extents,
            nodes.c.untouched_mib,
            nodes.c.nodes,
            nodes.c.observed_until,
            nodes.c.source,
            whole.untouched_mib.label("memory_untouched_mib"),
            split.source.label("split_source"),
            split.model_version,
            split.inputs,
            now_seconds().label("now"),
        )
        .outerjoin(nodes, nodes.c.instance_uuid == row.consumer_uuid)
        .outerjoin(whole, and_(whole.instance_uuid == row.consumer_uuid, whole.node == WHOLE))
        .outerjoin(split, split.instance_uuid == row.consumer_uuid)
        .where(row.purpose == Purpose.GUEST)
    )
    return session.execute(query).all()


def _fresh(row: Any, fresh_seconds: float) -> bool:
    return row.observed_until is not None and row.observed_until >= row.now - fresh_seconds


def _suspect(row: Any, limit: Callable[[int], float]) -> bool:
    """Return whether the labels leave open that it touched more; of other nodes than it has now they say nothing."""
    return row.nodes != len(row.extents) or row.pool_mib - row.untouched_mib > limit(row.pool_mib)


def _label(row: Any, fresh_seconds: float) -> float | None:
    return float(row.untouched_mib) if _fresh(row, fresh_seconds) else None


def _newest(session: Session, suspects: Iterable[Any], fresh_seconds: float) -> dict[str, float]:
    """Return the untouched MiB of the pool memory of each suspect all of whose nodes were looked at, by allocation."""
    found: dict[str, float] = {}
    items = list(suspects)
    for at in range(0, len(items), AT_A_TIME):
        some = items[at : at + AT_A_TIME]
        looks = _looks(session, [row.consumer_uuid for row in some], some[0].now - fresh_seconds)
        for row in some:
            nodes = looks[row.consumer_uuid, row.host]
            if len(nodes) == len(row.extents):
                found[row.allocation_uuid] = sum(nodes.values())
    return found


def _looks(session: Session, consumers: Sequence[str], since: float) -> dict[tuple[str, str], dict[int, float]]:
    """Return the newest look at each pool node, by VM and host."""
    row = TelemetryRow
    query = (
        select(row.consumer_uuid, row.host, row.node, row.minimum)
        .where(
            row.consumer_uuid.in_(consumers),
            row.period_seconds == SAMPLE,
            row.taken_at >= int(since),
            row.metric == Metric.UNTOUCHED_MIB,
            row.node > LOCAL_NODE,
            row.readings > 0,
        )
        .order_by(row.taken_at)
    )
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for consumer, host, node, untouched in session.execute(query):
        found[consumer, host][node] = untouched
    return found


def _guest(row: Any, untouched_mib: float | None, migrating: bool) -> PoolGuest:
    pdm = (row.inputs or {}).get("pdm")
    return PoolGuest(
        row.consumer_uuid,
        row.allocation_uuid,
        row.project_id,
        row.host,
        row.guest_mib,
        row.pool_mib,
        untouched_mib,
        row.memory_untouched_mib,
        row.split_source or "",
        row.model_version or "",
        None if pdm is None else float(pdm),
        row.source or Source.MEASURED,
        migrating,
    )
