"""What long-lived instances had left untouched by the end of each week: their labels, as these were known then.

Of the periods that telemetry is summed up in. A week's mark is made of what was seen by its end, and of nothing later.
"""

from collections import defaultdict
from datetime import datetime

from sqlalchemy import ColumnClause, func, literal_column, select
from sqlalchemy.orm import Session

from pondstack.db.models import InstanceRow, TelemetryRow
from pondstack.db.store.telemetry import SAMPLE, WHOLE
from pondstack.domain.history import moment
from pondstack.domain.telemetry import Metric

WEEK = 7 * 86400

Marks = tuple[tuple[datetime, int], ...]


def weekly(session: Session, since: int, until: float, min_coverage: float) -> dict[str, Marks]:
    """Return the marks of each instance, the oldest first, of the weeks from `since` that ended by `until`.

    A mark of a life of which less than `min_coverage` had been observed by then is none. Times in seconds.
    """
    row, instance = TelemetryRow, InstanceRow
    # Not a bound value: PostgreSQL would not take the expression for the one that it groups by.
    seconds: ColumnClause[int] = literal_column(str(WEEK))
    week = row.taken_at - row.taken_at % seconds
    query = (
        select(
            row.consumer_uuid,
            week.label("week"),
            func.max(instance.sized_at),
            func.min(row.minimum),
            func.count(func.distinct(row.taken_at)) * func.max(row.period_seconds),
        )
        .join(instance, instance.instance_uuid == row.consumer_uuid)
        .where(
            row.metric == Metric.UNTOUCHED_MIB,
            row.node == WHOLE,
            row.period_seconds > SAMPLE,
            row.minimum.is_not(None),
            row.taken_at >= instance.sized_at,
            row.taken_at >= since,
        )
        .group_by(row.consumer_uuid, week)
        .order_by(row.consumer_uuid, week)
    )
    found: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    least: dict[str, float] = {}
    observed: dict[str, int] = defaultdict(int)
    for uuid, begin, sized_at, minimum, seen in session.execute(query):
        end = int(begin) + WEEK
        if end > until:
            continue
        least[uuid] = min(minimum, least.get(uuid, minimum))
        observed[uuid] += int(seen)
        if observed[uuid] >= min_coverage * (end - max(sized_at, since)):
            found[uuid].append((moment(end), int(least[uuid])))
    return {uuid: tuple(marks) for uuid, marks in found.items()}
