"""What each instance's counters came to so far, taken from its periods as they are made, so that it outlives them.

In the transaction that makes the periods: each counts once. So nobody reads the samples of weeks to know a project.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from pondstack.db.connection.upsert import upsert
from pondstack.db.models import CounterRow, InstanceRow, TelemetryRow, table
from pondstack.db.store.labels import AT_A_TIME
from pondstack.prediction.counters import COUNTERS


def fold(session: Session, period_seconds: int, start: int, end: int, whole: int) -> None:
    """Take the periods from `start` to `end` into the sums; `whole`: the node of what concerns a guest as a whole."""
    periods: dict[str, list[Any]] = defaultdict(list)
    row = TelemetryRow
    query = select(row.consumer_uuid, row.metric, row.taken_at, row.readings, row.mean, row.source).where(
        row.period_seconds == period_seconds,
        row.taken_at >= start,
        row.taken_at < end,
        row.node == whole,
        row.metric.in_(COUNTERS),
        row.readings > 0,
    )
    for found in session.execute(query):
        periods[found.consumer_uuid].append(found)
    consumers = sorted(periods)
    for at in range(0, len(consumers), AT_A_TIME):
        some = consumers[at : at + AT_A_TIME]
        present, sized = _present(session, some), _sized(session, some)
        changed = [
            _folded(present.get(uuid), uuid, [item for item in periods[uuid] if item.taken_at >= sized.get(uuid, 0)])
            for uuid in some
        ]
        upsert(session, table(CounterRow), [item for item in changed if item["counters"]])


def forget(session: Session, instance_uuids: Iterable[str]) -> None:
    """Begin anew: an instance has got another flavor, or is forgotten."""
    session.execute(delete(CounterRow).where(CounterRow.instance_uuid.in_(list(instance_uuids))))


def _present(session: Session, consumers: list[str]) -> dict[str, dict[str, Any]]:
    rows = table(CounterRow)
    found = session.execute(select(rows).where(rows.c.instance_uuid.in_(consumers)))
    return {row.instance_uuid: dict(row._mapping) for row in found}


def _sized(session: Session, consumers: list[str]) -> dict[str, int]:
    row = InstanceRow
    query = select(row.instance_uuid, row.sized_at).where(row.instance_uuid.in_(consumers))
    return {uuid: sized_at for uuid, sized_at in session.execute(query)}


def _folded(before: dict[str, Any] | None, uuid: str, periods: list[Any]) -> dict[str, Any]:
    old = before or {"counters": {}, "observed_until": 0, "source": ""}
    sums = {metric: list(pair) for metric, pair in old["counters"].items()}
    for item in periods:
        total, readings = sums.get(item.metric, (0.0, 0))
        sums[item.metric] = [total + item.mean * item.readings, readings + int(item.readings)]
    return {
        "instance_uuid": uuid,
        "counters": sums,
        "observed_until": max([old["observed_until"], *(item.taken_at for item in periods)]),
        "source": max([old["source"], *(item.source for item in periods)]),
    }
